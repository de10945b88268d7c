import type { JobContext, StepTools, StreamEmit, StreamTools, TransactionTools } from '../../job'
import { type Clock, PermanentError, RetryAfterError } from '../../base'
import {
  bodyFails,
  failureOf,
  RETRY_AFTER_MS,
  sayingsOf,
  type ScriptStep,
  type ScriptStream,
  type ScriptTransaction,
} from './scripts'

/** A body that a scripted job began. */
export interface BodyStart {
  readonly runId: string
  readonly runAttempt: number
  readonly step: ScriptStep | ScriptStream | ScriptTransaction
  readonly kind: 'run' | 'stream' | 'transaction'
  readonly tools: Pick<StepTools, 'attempt'> & Partial<Pick<StepTools, 'checkpoint'>>
  /** Of a stream: what its chunks call the try that says them. */
  readonly tryName: string | null
}

/** What scripted jobs need, and whom they tell. */
export interface ScriptedJobsOptions {
  /** Slow bodies take time on this clock. */
  readonly clock: Clock
  readonly onBodyStart?: (start: BodyStart) => void
  /** For a stream, whose chunks tell which try they are of. Default: all have one name. */
  readonly nameTry?: () => string
  /** Something was emitted that had to be refused, and was not. */
  readonly onLateChunk?: (what: string) => void
}

/** After its time-out, a body that does not give up says more. */
const LATE_MS = 40

/** Whose body it is. */
export interface BodyPlayer extends ScriptedJobsOptions {
  readonly ctx: JobContext
}

export async function playBody(player: BodyPlayer, step: ScriptStep, tools: StepTools): Promise<number> {
  const { clock, ctx, onBodyStart } = player
  const { saves = 0, ms = 0, logs = 0, ignoresSignal } = step
  onBodyStart?.({ runId: ctx.runId, runAttempt: ctx.attempt, step, tools, kind: 'run', tryName: null })
  const signal = ignoresSignal === true ? null : tools.signal
  const isFailing = bodyFails(step, ctx.attempt, tools.attempt - 1)
  if (isFailing && step.failure === 'hangs') return hang(signal)
  // So that there are tries which fail before their first checkpoint, and some that do after their last.
  if (isFailing && step.fails !== undefined) throw errorOf(step)
  for (let saved = typeof tools.checkpoint === 'number' ? tools.checkpoint : 0; saved < saves; saved++) {
    await pause(clock, ms / (saves + 1), signal)
    await tools.save(saved + 1)
  }
  for (let line = 0; line < logs; line++) tools.log.info(`line ${line} of ${step.name}`)
  if (ms > 0) await pause(clock, saves === 0 ? ms : ms / (saves + 1), signal)
  if (isFailing) throw errorOf(step)
  return step.value
}

interface Speaker {
  readonly player: BodyPlayer
  readonly step: ScriptStream
  readonly emit: StreamEmit
  readonly tools: StreamTools
}

export async function playStreamBody({ player, step, emit, tools }: Speaker): Promise<number> {
  const { clock, ctx, onBodyStart, nameTry, onLateChunk } = player
  const tryName = nameTry?.() ?? 'try'
  onBodyStart?.({ runId: ctx.runId, runAttempt: ctx.attempt, step, tools, kind: 'stream', tryName })
  const signal = step.ignoresSignal === true ? null : tools.signal
  const isFailing = bodyFails(step, ctx.attempt, tools.attempt - 1)
  for (const { ms, chunk } of sayingsOf(step, tryName, isFailing)) {
    if (ms > 0) await pause(clock, ms, signal)
    const emitted = emit(chunk)
    if (step.hasty !== true) await emitted
  }
  for (let line = 0; line < (step.logs ?? 0); line++) tools.log.info(`line ${line} of ${step.name}`)
  if (!isFailing) return step.value
  if (step.failure !== 'hangs') throw errorOf(step)
  const sayMore = () => {
    const refused = emit(`${tryName} late`)
    refused
      .then(() => onLateChunk?.(`step ${step.name} of run ${ctx.runId} took a chunk after its try was over`))
      .catch(() => {})
  }
  tools.signal.addEventListener('abort', () => {
    sayMore()
    clock.schedule(LATE_MS, sayMore)
  })
  return hang(signal)
}

interface Writer {
  readonly player: BodyPlayer
  readonly step: ScriptTransaction
  readonly tools: TransactionTools
  /** The transaction: what is put there is stored with the step. */
  readonly rows: unknown
}

export async function playTransactionBody({ player, step, tools, rows }: Writer): Promise<number> {
  const { clock, ctx, onBodyStart } = player
  onBodyStart?.({ runId: ctx.runId, runAttempt: ctx.attempt, step, tools, kind: 'transaction', tryName: null })
  if (Array.isArray(rows)) rows.push(step.name)
  if (step.ms !== undefined && step.ms > 0)
    await pause(clock, step.ms, step.ignoresSignal === true ? null : tools.signal)
  if (bodyFails(step, ctx.attempt, tools.attempt - 1)) throw errorOf(step)
  return step.value
}

function errorOf(step: ScriptStep): Error {
  const message = failureOf(step)
  if (step.failure === 'permanent') return new PermanentError(message)
  return step.failure === 'after' ? new RetryAfterError(message, RETRY_AFTER_MS) : new Error(message)
}

function hang(signal: AbortSignal | null): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function pause(clock: Clock, ms: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      callOff()
      reject(signal?.reason)
    }
    const callOff = clock.schedule(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted === true) abort()
  })
}
