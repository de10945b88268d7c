import type { Heard } from './engine'
import type { EventInput } from './events'
import type { StepCommit } from './step-commit'
import type { RecordedStep, StepScope } from './step-scope'
import type { Json, NewRun, StepKind, StepRecord, StepStatus, StepWrite } from './storage'

/** The row of one ctx call. */
export interface StepRow {
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

interface NewRowParams extends Pick<StepRow, 'scope' | 'name' | 'index' | 'kind'> {
  readonly before: RecordedStep | undefined
  readonly waitName?: string
}

/** Goes on in the row that is there. */
export function newRow({ scope, name, index, kind, before, waitName }: NewRowParams): StepRow {
  const { environment } = scope.engine
  return {
    ...{ scope, name, index, kind, waitName: waitName ?? null },
    rowId: before?.id ?? environment.createId(),
    checkpoint: checkpointOf(before, kind),
    startedAt: environment.clock.monotonic(),
  }
}

/** What a body of another kind has left there says nothing to this one. */
export function checkpointOf(before: RecordedStep | undefined, kind: StepKind): Json | null {
  return before?.kind === kind ? before.checkpoint : null
}

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

export function rowOf(row: StepRow, status: StepStatus, result: RowResult): RecordedStep {
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
export function commitRow(row: StepRow, status: StepStatus, result: RowResult = {}): Promise<CommittedRow> {
  return new Promise((answer, fail) => commitRowThen(row, { ...result, status }, { answer, fail }))
}

/** A row that was kept. */
export interface CommittedRow {
  readonly row: RecordedStep
  /** Of its event. */
  readonly seq: number | undefined
  readonly children: readonly string[]
}

export function commitRowThen(
  row: StepRow,
  { status, ...result }: RowResult & { readonly status: StepStatus },
  { answer, fail }: Heard<CommittedRow>,
): void {
  const { scope } = row
  const { recorded, commit } = toStepCommit(row, status, result)
  scope.writer.commitStep(commit, (given) => {
    if (given.kept) answer({ row: recorded, seq: given.eventSeq, children: given.children })
    else fail(given.refusal ?? scope.interruption.cause())
  })
}

/** The call's row, and what the writer needs to store it. */
export function toStepCommit(row: StepRow, status: StepStatus, result: RowResult) {
  const { scope } = row
  const recorded = rowOf(row, status, result)
  const { next, event = null, consumedSignals = [], children = [] } = result
  if (status === 'completed') scope.completedSteps = Math.max(scope.completedSteps, row.index + 1)
  const commit: StepCommit = {
    writes: [
      toWrite(row, recorded, { due: result.due ?? null, child: result.child ?? null }),
      ...(next === undefined ? [] : [toWrite(row, next.row, { due: { inMs: next.delayMs }, child: null })]),
    ],
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
export function startedWrite(row: StepRow): StepWrite {
  return toWrite(row, rowOf(row, 'started', {}), { due: null, child: null })
}

function toWrite(row: StepRow, recorded: RecordedStep, { due, child }: Pick<StepWrite, 'due' | 'child'>): StepWrite {
  const { id, kind, status, attempt, output, error, errorDetail, checkpoint } = recorded
  const { name, index, waitName } = row
  const durationMs = status === 'waiting' ? 0 : elapsedMs(row)
  const result = { output, error, errorDetail, checkpoint }
  return { id, name, index, kind, status, attempt, ...result, durationMs, due, waitName, child }
}

/** What is left of a wait, by the storage's own time at the claim; rather a little more than less. */
export function leftMs({ run, begunAt, engine }: StepScope, dueAt: string | null): number {
  if (dueAt === null || run.heartbeatAt === null) return 0
  const passedMs = engine.environment.clock.monotonic() - begunAt
  return Math.max(0, Date.parse(dueAt) - Date.parse(run.heartbeatAt) - passedMs)
}

export function elapsedMs({ scope, startedAt }: StepRow): number {
  return Math.max(0, Math.round(scope.engine.environment.clock.monotonic() - startedAt))
}

export function idsOf({ scope, name, index }: StepRow) {
  return { runId: scope.run.id, jobName: scope.run.jobName, stepName: name, stepIndex: index }
}
