import type { Heard } from '../engine'
import type { EventInput } from '../job'
import type { NewRun, StepKind, StepRecord, StepStatus, StepWrite } from '../port'
import type { Json } from '../base'
import type { StepCommit } from '../commit'
import type { RecordedStep, StepScope } from './scope'

/** The row of one ctx call. */
export interface CallRow {
  readonly scope: StepScope
  readonly name: string
  readonly index: number
  readonly kind: StepKind
  /** What a wait waits for. */
  readonly waitName: string | null
  readonly rowId: string
  checkpoint: Json | null
  readonly startedAt: number
}

interface NewRowParams extends Pick<CallRow, 'scope' | 'name' | 'index' | 'kind'> {
  readonly before: RecordedStep | undefined
  readonly waitName?: string
}

/** Goes on in the row that is there. */
export function newRow({ scope, name, index, kind, before, waitName }: NewRowParams): CallRow {
  const { environment } = scope.engine
  return {
    scope,
    name,
    index,
    kind,
    waitName: waitName ?? null,
    rowId: before?.id ?? environment.createId(),
    checkpoint: checkpointOf(before, kind),
    startedAt: environment.clock.monotonic(),
  }
}

/** What a body of another kind has left there says nothing to this one. */
export function checkpointOf(before: RecordedStep | undefined, kind: StepKind): Json | null {
  return before?.kind === kind ? before.checkpoint : null
}

const NONE: readonly never[] = Object.freeze([])

/** Of a failed row: its failure is no outcome that a later execution has to repeat. */
export const NO_ATTEMPT = 0

export interface RowResult {
  readonly attempt?: number
  readonly event?: EventInput | null
  readonly output?: Json | null
  /** Default: the one that the row has. */
  readonly checkpoint?: Json | null
  readonly error?: string
  readonly errorDetail?: StepRecord['errorDetail']
  /** Of a wait. */
  readonly due?: StepWrite['due']
  readonly child?: NewRun
  /** Runs to create beside the row. */
  readonly children?: readonly NewRun[]
  readonly consumedSignals?: readonly number[]
  /** Of a body that is not over: whether it has got further than any start before it. */
  readonly hasProgressed?: boolean
  /** The row in which the step goes on, after a delay. */
  readonly next?: { readonly row: RecordedStep; readonly delayMs: number }
}

export function rowOf(row: CallRow, status: StepStatus, result: RowResult): RecordedStep {
  return {
    id: row.rowId,
    kind: row.kind,
    status,
    attempt: result.attempt ?? row.scope.run.attempt,
    output: result.output ?? null,
    error: result.error ?? null,
    errorDetail: result.errorDetail ?? null,
    checkpoint: result.checkpoint === undefined ? row.checkpoint : result.checkpoint,
    dueAt: null,
    isDue: false,
  }
}

/** Writes the call's row, or throws when the lease is lost (the execution is interrupted by then) or the storage refuses. */
export function commitRow(row: CallRow, status: StepStatus, result: RowResult = {}): Promise<CommittedRow> {
  return new Promise((answer, fail) => sendRow(row, toStepCommit(row, status, result), { answer, fail }))
}

/** A row that was kept. */
export interface CommittedRow {
  readonly row: RecordedStep
  /** Of its event. */
  readonly seq: number | undefined
  readonly children: readonly string[]
}

/** A row and its commit, for who needs no promise. */
export function sendRow(
  { scope }: CallRow,
  { recorded, commit }: ReturnType<typeof toStepCommit>,
  heard: Heard<CommittedRow>,
): void {
  scope.writer.commitStep(commit, (given) => {
    if (given.kept) heard.answer({ row: recorded, seq: given.eventSeq, children: given.children })
    else heard.fail(given.refusal ?? scope.interruption.cause())
  })
}

/** The call's row, and what the writer needs to store it. */
export function toStepCommit(row: CallRow, status: StepStatus, result: RowResult) {
  const { scope } = row
  const recorded = rowOf(row, status, result)
  const { next, event = null, consumedSignals = NONE, children = NONE } = result
  if (status === 'completed') scope.completedSteps = Math.max(scope.completedSteps, row.index + 1)
  const write = toWrite(row, recorded, { due: result.due ?? null, child: result.child ?? null })
  const commit: StepCommit = {
    writes:
      next === undefined ? [write] : [write, toWrite(row, next.row, { due: { inMs: next.delayMs }, child: null })],
    // A start alone, or one that was called off, is where the run was before.
    hasProgressed: result.hasProgressed ?? (status !== 'started' && recorded.attempt !== NO_ATTEMPT),
    currentStepIndex: status === 'completed' ? scope.completedSteps : null,
    children,
    consumedSignals,
    event,
  }
  return { recorded, commit }
}

/** The call's row of a body that is not over. */
export function startedWrite(row: CallRow): StepWrite {
  return toWrite(row, rowOf(row, 'started', {}), { due: null, child: null })
}

function toWrite(row: CallRow, recorded: RecordedStep, { due, child }: Pick<StepWrite, 'due' | 'child'>): StepWrite {
  return {
    id: recorded.id,
    name: row.name,
    index: row.index,
    kind: recorded.kind,
    status: recorded.status,
    attempt: recorded.attempt,
    output: recorded.output,
    error: recorded.error,
    errorDetail: recorded.errorDetail,
    checkpoint: recorded.checkpoint,
    durationMs: recorded.status === 'waiting' ? 0 : elapsedMs(row),
    due,
    waitName: row.waitName,
    child,
  }
}

/** What is left of a wait, by the storage's own time at the claim; rather a little more than less. */
export function leftMs({ run, begunAt, engine }: StepScope, dueAt: string | null): number {
  if (dueAt === null || run.heartbeatAt === null) return 0
  const passedMs = engine.environment.clock.monotonic() - begunAt
  return Math.max(0, Date.parse(dueAt) - Date.parse(run.heartbeatAt) - passedMs)
}

export function elapsedMs({ scope, startedAt }: CallRow): number {
  return Math.max(0, Math.round(scope.engine.environment.clock.monotonic() - startedAt))
}

export function idsOf({ scope, name, index }: CallRow) {
  return { runId: scope.run.id, jobName: scope.run.jobName, stepName: name, stepIndex: index }
}
