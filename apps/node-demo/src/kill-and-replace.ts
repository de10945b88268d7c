import { once } from 'node:events'
import { killInTheMiddle } from './kill-in-the-middle'
import { formatSeconds } from './numbers'
import { BATCHES } from './sample-files'
import { IMPORT, type Stage, stepNames } from './stage'
import { watchRun } from './watch-run'
import { startWorker, type WorkerProcess } from './worker-process'

/** The point of it all: one worker dies in the middle of a step, the next is there at once. */
export async function killAndReplace(stage: Stage, runId: string) {
  const { demo, screen, signal } = stage
  const { paint } = screen
  const first = hire(stage, null)
  const kill = killInTheMiddle(first, BATCHES)
  const getRun = () => demo.importCsv.getRun(runId)
  const until = () => kill.sentAt() !== null
  await watchRun({ label: IMPORT, getRun, worker: first, screen, signal, until })
  const sentAt = kill.sentAt()
  if (sentAt === null) throw new Error('The import was over before its worker could be killed. Try more --rows.')
  await kill.done()
  screen.settle()
  const recorded = await stepNames(demo, runId)
  screen.line(`  ${paint('red', '✗')} worker 1 (pid ${first.pid}) killed, ${recorded.length} steps recorded`)

  const second = hire(stage, first)
  await firstStep({ worker: second, runId, signal })
  const gap = formatSeconds(performance.now() - sentAt)
  screen.line(`  ${paint('green', '→')} worker 2 (pid ${second.pid}) carries on, ${gap} later`)
  return { first, second, recorded }
}

function hire({ folder, workers, options }: Stage, dead: WorkerProcess | null): WorkerProcess {
  const { db, path, witness } = folder
  const workerId = `demo-${process.pid}-${workers.length + 1}`
  const config = { db, folder: path, witness, workerId, history: options.dashboard }
  const worker = startWorker({ ...config, dead: dead?.workerId ?? null })
  workers.push(worker)
  return worker
}

interface FirstStepParams {
  readonly worker: WorkerProcess
  readonly runId: string
  readonly signal: AbortSignal
}

/** Resolves when the worker begins its first step of this very run. */
async function firstStep({ worker, runId, signal }: FirstStepParams): Promise<void> {
  const began = new Promise<void>((resolve) => {
    worker.onStep((step) => {
      if (step.runId === runId) resolve()
    })
  })
  signal.throwIfAborted()
  await Promise.race([began, worker.gone, once(signal, 'abort')])
  signal.throwIfAborted()
  worker.check()
}
