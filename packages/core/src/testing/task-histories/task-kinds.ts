import { PermanentError, RetryAfterError } from '../../base'
import type { RetryPolicy } from '../../job'
import type { TaskOptions } from '../../queue/index'
import type { Random } from '../simulation/random'

/** A type of tasks, and what is promised of them. */
export interface TaskKind {
  readonly type: string
  readonly maxAttempts: number
  readonly timeout: number | null
  readonly concurrency: number | null
  readonly rateLimit: { readonly max: number; readonly per: number } | null
  readonly backoff: Backoff
}

type Backoff =
  | { readonly kind: 'fixed'; readonly ms: number }
  | { readonly kind: 'growing'; readonly from: number; readonly factor: number; readonly upTo: number }
  | { readonly kind: 'asked'; readonly ms: number }

/** What goes wrong in an attempt. */
export type Failure =
  | { readonly kind: 'error' | 'text' | 'permanent' | 'hopeless'; readonly message: string }
  | { readonly kind: 'retryAfter'; readonly message: string; readonly afterMs: number }
  | { readonly kind: 'timeout'; readonly message: string }

/** Times that a wait is between. */
export interface Bounds {
  readonly least: number
  readonly most: number
}

export function makeKinds(random: Random): readonly TaskKind[] {
  return ['mail', 'image', 'report'].slice(0, random.between(1, 3)).map((type) => ({
    type,
    maxAttempts: random.between(1, 4),
    timeout: random.chance(0.5) ? random.between(200, 3000) : null,
    concurrency: random.chance(0.4) ? random.between(1, 2) : null,
    rateLimit: random.chance(0.3) ? { max: random.between(1, 3), per: random.between(500, 4000) } : null,
    backoff: makeBackoff(random),
  }))
}

function makeBackoff(random: Random): Backoff {
  return random.pick<Backoff>([
    { kind: 'fixed', ms: random.between(0, 3000) },
    { kind: 'growing', from: 500, factor: 2, upTo: 5000 },
    { kind: 'asked', ms: random.between(100, 2000) },
  ])
}

/** As the queue is told. */
export function optionsOf({ timeout, concurrency, rateLimit, backoff, maxAttempts }: TaskKind): TaskOptions {
  return {
    retry: { maxAttempts, delay: delayOf(backoff) },
    ...(timeout !== null && { timeout }),
    ...(concurrency !== null && { concurrency }),
    ...(rateLimit !== null && { rateLimit }),
  }
}

function delayOf(backoff: Backoff): RetryPolicy['delay'] {
  switch (backoff.kind) {
    case 'fixed':
      return backoff.ms
    case 'growing':
      return { from: backoff.from, factor: backoff.factor, upTo: backoff.upTo }
    default:
      return (attempt, error) => (String(error).includes('hopeless') ? null : backoff.ms * attempt)
  }
}

/** How long a task waits after this attempt; `null` when it is dead. */
export function backoffAfter(kind: TaskKind, attempt: number, failure: Failure): Bounds | null {
  const { backoff, maxAttempts } = kind
  if (attempt >= maxAttempts || failure.kind === 'permanent') return null
  if (failure.kind === 'retryAfter') return { least: failure.afterMs, most: failure.afterMs }
  if (backoff.kind === 'fixed') return { least: backoff.ms, most: backoff.ms }
  if (backoff.kind === 'growing') {
    return { least: 0, most: Math.min(backoff.upTo, backoff.from * backoff.factor ** (attempt - 1)) }
  }
  const ms = backoff.ms * attempt
  return failure.kind === 'hopeless' ? null : { least: ms, most: ms }
}

export function timeoutOf({ type, timeout }: TaskKind): Failure {
  return { kind: 'timeout', message: `The task "${type}" took longer than ${timeout} ms.` }
}

/** What a handler throws. */
export function toThrown(failure: Failure): unknown {
  const { message } = failure
  switch (failure.kind) {
    case 'text':
      return message
    case 'permanent':
      return new PermanentError(message)
    case 'retryAfter':
      return new RetryAfterError(message, failure.afterMs)
    default:
      return new Error(message)
  }
}
