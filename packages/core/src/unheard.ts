import { brandOf } from './error-brand'
import { builtin } from './platform'

interface NodeProcess {
  emit(type: string, ...args: unknown[]): boolean
}

interface RejectionEvent {
  readonly reason: unknown
  preventDefault(): void
  stopImmediatePropagation(): void
}

interface Page {
  addEventListener?(type: 'unhandledrejection', listener: (event: RejectionEvent) => void): void
}

const WATCHED = Symbol.for('@coji/durably-core/unheard')

/**
 * A job may have several things going on at once, and nobody can see from outside which of them it listens to at the moment: in
 * `const left = a(), right = b(); await left` nobody hears of `right` yet. That the run is interrupted there is told to whoever
 * still asks, and must not end the process, or be reported, when nobody does. All other rejections go their way as ever.
 */
export function hushInterruptions(): void {
  const place = globalThis as Page & { [WATCHED]?: true }
  if (place[WATCHED] === true) return
  place[WATCHED] = true
  const process = builtin<NodeProcess>('node:process')
  if (process !== undefined) hushInNode(process)
  place.addEventListener?.('unhandledrejection', (event) => {
    if (!isInterruption(event.reason)) return
    event.preventDefault()
    event.stopImmediatePropagation()
  })
}

/**
 * A listener would change what Node does with the rejections of others, and would not keep those of the application from ours.
 * Who answers that an event was heard does neither.
 */
function hushInNode(process: NodeProcess): void {
  const { emit } = process
  const hushed = new WeakSet<object>()
  process.emit = function (this: NodeProcess, type, ...args) {
    const [reason, what] = args
    if (type === 'unhandledRejection' && isInterruption(reason)) {
      hushed.add(what as object)
      return true
    }
    // With --unhandled-rejections=strict.
    if (type === 'uncaughtException' && what === 'unhandledRejection' && isInterruption(reason)) return true
    // The promise is listened to after all.
    if (type === 'rejectionHandled' && hushed.has(reason as object)) return true
    return emit.call(this, type, ...args)
  }
}

/** Also in what the job made of it: an error with a cause, or one for several. */
function isInterruption(thrown: unknown, depth = 0): boolean {
  if (brandOf(thrown)?.kind === 'InterruptionError') return true
  if (typeof thrown !== 'object' || thrown === null || depth === 8) return false
  try {
    const { cause, errors } = thrown as { readonly cause?: unknown; readonly errors?: unknown }
    if (isInterruption(cause, depth + 1)) return true
    return Array.isArray(errors) && errors.some((error) => isInterruption(error, depth + 1))
  } catch {
    return false
  }
}
