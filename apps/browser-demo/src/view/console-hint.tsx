/** Tells developers what they can reach; what is in memory is nobody else's to see. */
export function ConsoleHint({ isInMemory }: { readonly isInMemory: boolean }) {
  return (
    <footer className="page-footer">
      {!isInMemory && (
        <p>
          <a href="dashboard.html" target="_blank" rel="noreferrer">
            The dashboard
          </a>{' '}
          shows the same runs, as it would in your own application.
        </p>
      )}
      <p>
        Open the console: <code>await durably.getRuns()</code>, <code>await durably.explain(id)</code>,{' '}
        <code>durably.on('step:complete', console.log)</code>. The jobs are <code>jobs.importCsv</code> and{' '}
        <code>jobs.buildSearchIndex</code>.
      </p>
    </footer>
  )
}
