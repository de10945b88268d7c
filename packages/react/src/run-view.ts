import type { Progress, Run, Step } from '@coji/durably-core'
import type { LiveRun, LiveStep, StreamedStep } from './live-run'

/** A step as the database has it, or, until it has been read again, as its events told of it. */
export interface StepView extends Omit<Step, 'status' | 'kind' | 'attempt'> {
  /** `running`: its body runs. */
  readonly status: Step['status'] | 'running'
  /** `null` until the step has been read. */
  readonly kind: Step['kind'] | null
  /** `null` until the step has been read. */
  readonly attempt: number | null
}

/** A run as it is known. What changes together changes at once: where `status` says `completed`, the output is there. */
export interface RunView<TOutput = unknown> {
  /** `null` while it has not been read, and when there is none. */
  readonly run: Run<TOutput> | null
  readonly status: Run['status'] | null
  /** Of a run that is `completed`. */
  readonly output: TOutput | null
  /** Why the run failed or timed out; while it waits to be tried again, why the attempt before did. */
  readonly error: string | null
  readonly progress: Progress | null
  /** In the order in which the job called them. */
  readonly steps: readonly StepView[]
  /** What `ctx.stream` has emitted, in the order in which the streams began. */
  readonly streams: readonly StreamedStep[]
  /** The text of the stream that began last. */
  readonly text: string
  /** It has not been read yet. */
  readonly isLoading: boolean
  /** There is no such run: it was deleted, or never was. */
  readonly isMissing: boolean
  /** The run has not ended, and what is shown follows it. */
  readonly isLive: boolean
  /** Reading or following fails, and is tried again; what is shown is what was known before. */
  readonly trouble: Error | null
}

/** The run with its steps, as it was read. */
export interface RunRead {
  readonly run: Run
  readonly steps: readonly Step[]
}

export const LOADING: RunView<never> = {
  run: null,
  status: null,
  output: null,
  error: null,
  progress: null,
  steps: [],
  streams: [],
  text: '',
  isLoading: true,
  isMissing: false,
  isLive: false,
  trouble: null,
}

/** Nobody asked for a run. */
export const NO_RUN: RunView<never> = { ...LOADING, isLoading: false }

export const MISSING: RunView<never> = { ...LOADING, isLoading: false, isMissing: true }

/** Of a run of which only the run itself is known, as a server may have read it. */
export function viewOf<TOutput>(run: Run<TOutput>): RunView<TOutput> {
  return { ...LOADING, ...partOf(run), isLoading: false }
}

export function partOf<TOutput>(
  run: Run<TOutput>,
): Pick<RunView<TOutput>, 'run' | 'status' | 'output' | 'error' | 'progress'> {
  return { run, status: run.status, output: run.output, error: run.error, progress: run.progress }
}

/** The steps of the database, and what the events of the run say beyond. */
export function stepsOf({ run, steps }: RunRead, live: LiveRun): readonly StepView[] {
  const completed = new Set(steps.flatMap(({ name, status }) => (status === 'completed' ? [name] : [])))
  const news = live.steps.filter(({ name, end }) => !completed.has(name) && (end !== null || run.status === 'running'))
  if (news.length === 0) return steps
  const told = new Set(news.map(({ name }) => name))
  const kept = steps.filter(({ name, status }) => status === 'failed' || !told.has(name))
  return [...kept, ...news.map(viewOfLive)].sort((a, b) => a.index - b.index || compare(a.startedAt, b.startedAt))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function viewOfLive({ name, index, startedAt, end }: LiveStep): StepView {
  return {
    name,
    index,
    kind: null,
    status: end === null ? 'running' : end.status,
    attempt: null,
    output: end?.status === 'completed' ? end.output : undefined,
    error: end?.status === 'failed' ? end.error : null,
    errorDetail: null,
    checkpoint: undefined,
    startedAt,
    completedAt: end?.at ?? null,
    dueAt: null,
  }
}
