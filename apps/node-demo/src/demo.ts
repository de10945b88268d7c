import { once } from 'node:events'
import type { CompletedRun } from '@coji/durably'
import { checkImport, checkSearch } from '@coji/durably-jobs/sample'
import { openDashboard } from './dashboard'
import { killAndReplace } from './kill-and-replace'
import { formatCount, formatMegabytes, formatSeconds } from './numbers'
import { openDemo } from './open-demo'
import { type JobReport, printReport } from './report'
import { DOCUMENTS, importPayload, indexPayload, SEED, writeSampleFiles } from './sample-files'
import { type DemoParams, IMPORT, INDEX, type Stage, stepNames } from './stage'
import { judge } from './verdict'
import { watchRun } from './watch-run'
import { readSightings } from './witness'

/** The whole demo; whether everything it claims holds. */
export async function runDemo(params: DemoParams): Promise<boolean> {
  const begun = performance.now()
  const { screen, folder } = params
  await prepare(params)
  const demo = openDemo({ db: folder.db, folder: folder.path, history: params.options.dashboard })
  const stage: Stage = { ...params, demo, workers: [], dashboard: null }
  try {
    const reports = await perform(stage)
    screen.line()
    const holds = printReport(screen, reports)
    screen.line()
    screen.line(screen.paint('dim', `  ${formatSeconds(performance.now() - begun)} in all`))
    await leaveOpen(stage)
    return holds
  } finally {
    await Promise.all([...stage.workers.map((worker) => worker.kill()), stage.dashboard?.close()])
    await stage.demo.durably.close()
  }
}

/** Whoever wanted to look has the time to. */
async function leaveOpen({ dashboard, screen, signal }: Stage): Promise<void> {
  if (dashboard === null) return
  screen.line()
  screen.line(`  The dashboard stays at ${dashboard.url} until Ctrl-C.`)
  if (!signal.aborted) await once(signal, 'abort')
}

async function prepare({ options, folder, screen, signal }: DemoParams): Promise<void> {
  const { paint } = screen
  screen.line()
  screen.line(`  ${paint('bold', 'durably')}`)
  screen.line(paint('dim', '  A worker is killed in the middle of a job.'))
  screen.line(paint('dim', '  Another one carries on from the last recorded step.'))
  screen.line()
  const { csvBytes, documentBytes } = await writeSampleFiles(folder.path, options.rows, signal)
  screen.line(`  orders     ${formatCount(options.rows)} rows of CSV, ${formatMegabytes(csvBytes)}`)
  screen.line(`  documents  ${formatCount(DOCUMENTS)}, ${formatMegabytes(documentBytes)}`)
  screen.line(`  database   libSQL, ${options.db ?? 'a file in a temporary folder'}`)
  screen.line()
}

async function perform(stage: Stage): Promise<JobReport[]> {
  const { demo, options, screen, signal, folder } = stage
  await demo.durably.migrate()
  if (options.dashboard) {
    stage.dashboard = await openDashboard(folder.db)
    screen.line(`  dashboard  ${stage.dashboard.url}`)
    screen.line()
  }
  const importRun = await demo.importCsv.trigger(importPayload(options.rows))
  const indexRun = await demo.buildSearchIndex.trigger(indexPayload())
  const { recorded, first, second } = await killAndReplace(stage, importRun.id)
  const watch = { worker: second, screen, signal }

  const getImport = () => demo.importCsv.getRun(importRun.id)
  const imported = await watchRun({ ...watch, label: IMPORT, getRun: getImport })
  screen.settle()
  const getIndex = () => demo.buildSearchIndex.getRun(indexRun.id)
  const indexed = await watchRun({ ...watch, label: INDEX, getRun: getIndex })
  screen.settle()
  await second.stop()

  if (imported === null || indexed === null) throw new Error('A run was not watched to its end.')
  const sightings = await readSightings(folder.witness)
  const report = async (label: string, run: CompletedRun, recordedAtKill: readonly string[]) => {
    const steps = await stepNames(demo, run.id)
    return {
      label,
      verdict: judge({ runId: run.id, steps, recordedAtKill, sightings, firstPid: first.pid }),
      ms: msOf(run),
    }
  }
  return [
    { ...(await report(IMPORT, imported, recorded)), problems: checkImport(imported.output, options.rows, SEED) },
    { ...(await report(INDEX, indexed, [])), problems: checkSearch(indexed.output, DOCUMENTS, SEED) },
  ]
}

function msOf(run: CompletedRun): number {
  return Date.parse(run.finishedAt ?? '') - Date.parse(run.startedAt ?? '')
}
