/** Tells developers what they can reach. */
export function ConsoleHint() {
  return (
    <footer className="page-footer">
      <p>
        Open the console: <code>await durably.getRuns()</code>, <code>await durably.explain(id)</code>,{' '}
        <code>durably.on('step:complete', console.log)</code>. The jobs are <code>jobs.importCsv</code> and{' '}
        <code>jobs.buildSearchIndex</code>.
      </p>
    </footer>
  )
}
