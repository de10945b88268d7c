import type { Run } from '@coji/durably-core'
import { Kept, type Observed } from './observed'
import type { RunView, StepView } from './run-view'
import type { WatchedRun } from './watched-run'

/** What one stream of a run has emitted. */
export interface StreamView {
  /** All chunks that are text, one after the other. */
  readonly text: string
  readonly chunks: readonly unknown[]
  /** Its step: whether it runs, and what it returned. `null` before it begins. */
  readonly step: StepView | null
  /** Of the run. */
  readonly status: Run['status'] | null
  /** The run has not been read yet. */
  readonly isLoading: boolean
  /** More may come. */
  readonly isStreaming: boolean
  /** Reading or following fails, and is tried again; what is shown is what was known before. */
  readonly trouble: Error | null
}

const NO_CHUNKS: readonly unknown[] = []

/** Of a run of which nothing is known, or nobody asked for. */
export function streamOf(view: RunView, stepName: string | undefined): StreamView {
  const { run, status, steps, streams, isLoading, trouble } = view
  const stream = stepName === undefined ? streams.at(-1) : streams.find(({ name }) => name === stepName)
  const name = stepName ?? stream?.name
  // Its last attempt.
  const step = steps.filter((each) => each.name === name).at(-1) ?? null
  return {
    text: stream?.text ?? '',
    chunks: stream?.chunks ?? NO_CHUNKS,
    step,
    status,
    isLoading,
    isStreaming: run !== null && run.finishedAt === null && step?.status !== 'completed',
    trouble,
  }
}

/** One stream of a run, from its beginning, also when the run has ended. `stepName`: of this step; else the last one. */
export class RunStream implements Observed<StreamView> {
  readonly #kept: Kept<StreamView>

  constructor(watched: WatchedRun, stepName: string | undefined) {
    const now = () => streamOf(watched.get(), stepName)
    this.#kept = new Kept<StreamView>(now(), () => {
      const stop = watched.subscribe(() => this.#set(now()))
      this.#set(now())
      return stop
    })
  }

  readonly get = (): StreamView => this.#kept.get()
  readonly subscribe = (listener: () => void): (() => void) => this.#kept.subscribe(listener)

  get isKept(): boolean {
    return this.#kept.isKept
  }

  close(): void {
    this.#kept.close()
  }

  /** Most of what changes about a run is none of its business. */
  #set(view: StreamView): void {
    const before = this.#kept.get()
    const isSame = Object.entries(view).every(([name, value]) => Object.is(value, before[name as keyof StreamView]))
    if (!isSame) this.#kept.set(view)
  }
}
