import { CHUNKS_TOGETHER } from './streams'
import type { RunStatus, StorageError } from '../base'
import { type EventInput, toTemplate } from '../job'
import type { CommitAnswer, EventTemplate, NewLog, NewRun, Outcome, Progress, RunCommit, StepWrite } from '../port'
import { toLogTemplate } from '../client'

/** What one commit takes at most: a longer one would hold up everybody else who writes. */
export const MAX_PIECES = 1000
const MAX_LENGTH = 4 * 1024 * 1024

/** The storage will never take it, and nothing of it was written. */
export interface Refused {
  readonly kept: false
  readonly refusal: StorageError
}

/** `eventSeq`: the number under which the step's event was stored. */
export type StepAnswer = (CommitAnswer & { readonly eventSeq?: number; readonly refusal?: undefined }) | Refused

/** Something to persist, in the order in which it happened. */
export interface Piece {
  readonly steps?: readonly StepWrite[]
  readonly hasProgressed?: boolean
  readonly currentStepIndex?: number | null
  readonly children?: readonly NewRun[] | undefined
  readonly consumedSignals?: readonly number[]
  readonly log?: NewLog
  readonly event?: EventInput | null
  readonly chunk?: { readonly stepId: string; readonly length: number; readonly dueAt: number }
  readonly resolve?: (answer: StepAnswer) => void
}

/** What goes with one commit. */
export interface Parcel {
  readonly pieces: readonly Piece[]
  readonly progress: Progress | null
  readonly outcome: Outcome | null
}

export const NOTHING: Parcel = { pieces: [], progress: null, outcome: null }

type Contents = Omit<RunCommit, 'lease' | 'commitNo' | 'leaseMs'>

export function contentsOf({ pieces, progress, outcome }: Parcel): Contents {
  const [only] = pieces
  if (pieces.length === 1 && only !== undefined) return contentsOfOne(only, progress, outcome)
  return {
    hasProgressed: hasProgressed({ pieces }),
    currentStepIndex: pieces.flatMap((piece) => piece.currentStepIndex ?? []).at(-1) ?? null,
    progress,
    steps: withoutOutdated(pieces.flatMap((piece) => piece.steps ?? [])),
    children: pieces.flatMap((piece) => piece.children ?? []),
    logs: pieces.flatMap((piece) => piece.log ?? []),
    events: pieces.flatMap(templateOf),
    consumedSignals: pieces.flatMap((piece) => piece.consumedSignals ?? []),
    outcome,
  }
}

/** Most commits are of one step. */
function contentsOfOne(piece: Piece, progress: Progress | null, outcome: Outcome | null): Contents {
  return {
    hasProgressed: piece.hasProgressed === true,
    currentStepIndex: piece.currentStepIndex ?? null,
    progress,
    steps: piece.steps ?? NONE,
    children: piece.children ?? NONE,
    logs: piece.log === undefined ? NONE : [piece.log],
    events: templateOf(piece),
    consumedSignals: piece.consumedSignals ?? NONE,
    outcome,
  }
}

const NONE: readonly never[] = Object.freeze([])

export function hasProgressed({ pieces }: Pick<Parcel, 'pieces'>): boolean {
  return pieces.some((piece) => piece.hasProgressed === true)
}

/** What was overtaken does not take the run back to where it was. */
export function laterThan(piece: Piece, stepIndex: number | null): Piece {
  const { currentStepIndex = null } = piece
  const isOvertaken = currentStepIndex !== null && stepIndex !== null && currentStepIndex < stepIndex
  return isOvertaken ? { ...piece, currentStepIndex: null } : piece
}

/** A start whose end goes with the same commit need not be written. */
function withoutOutdated(steps: readonly StepWrite[]): readonly StepWrite[] {
  if (!steps.some(({ status }) => status === 'started')) return steps
  const last = new Map(steps.map((step) => [step.id, step]))
  return steps.filter((step) => step.status !== 'started' || last.get(step.id) === step)
}

export function countForOneCommit(pieces: readonly Piece[]): number {
  let length = 0
  const end = pieces.findIndex(({ steps = [], children = [], log, chunk }, index) => {
    for (const { output, checkpoint } of steps) length += (output?.length ?? 0) + (checkpoint?.length ?? 0)
    for (const { payload } of children) length += payload?.length ?? 0
    length += (log?.data?.length ?? 0) + (chunk?.length ?? 0)
    return index === MAX_PIECES || (index > 0 && length > MAX_LENGTH)
  })
  return end === -1 ? pieces.length : end
}

/** Text that follows text of the same stream is one event with it. */
export function joinChunks(last: Piece, event: EventInput<'step:chunk'>, length: number): Piece | null {
  const { event: before, chunk } = last
  if (before?.type !== 'step:chunk' || chunk === undefined || before.stepName !== event.stepName) return null
  if (typeof before.chunk !== 'string' || typeof event.chunk !== 'string') return null
  if (chunk.length + length > CHUNKS_TOGETHER) return null
  return {
    ...last,
    event: { ...event, chunk: before.chunk + event.chunk },
    chunk: { ...chunk, length: chunk.length + length },
  }
}

/** Each piece hears of its own: events are numbered up to the last one the commit took, children come in their order. */
export function settle({ pieces, outcome }: Pick<Parcel, 'pieces' | 'outcome'>, answer: CommitAnswer | Refused): void {
  const last = answer.kept ? answer.seq - countLast(outcome, answer.status) : 0
  let eventSeq = last - countEvents(pieces)
  let born = 0
  for (const { event, steps = [], resolve } of pieces) {
    const hasEvent = event !== undefined && event !== null
    if (hasEvent) eventSeq += 1
    const firstChild = born
    for (const { child } of steps) if (child !== null) born += 1
    if (resolve === undefined) continue
    if (!answer.kept) resolve(answer)
    else {
      const children = born === firstChild ? NONE : answer.children.slice(firstChild, born)
      const { status, seq, wakes, cancelRequested } = answer
      const given = { kept: true, status, seq, wakes, cancelRequested, children } as const
      resolve(hasEvent ? { ...given, eventSeq } : given)
    }
  }
}

function templateOf({ event, log }: Piece): readonly EventTemplate[] {
  if (event === undefined || event === null) return NONE
  return [log === undefined ? toTemplate(event) : toLogTemplate(log)]
}

function countEvents(pieces: readonly Piece[]): number {
  let count = 0
  for (const { event } of pieces) if (event !== undefined && event !== null) count += 1
  return count
}

function countLast(outcome: Outcome | null, status: RunStatus): number {
  if (outcome === null) return 0
  return status === 'cancelled' ? outcome.eventsIfCancelled.length : outcome.events.length
}
