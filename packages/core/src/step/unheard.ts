import { brandOf, builtin } from '../base'

interface NodeProcess {
  emit(type: string | symbol, ...args: unknown[]): boolean
}

interface RejectionEvent {
  readonly reason: unknown
  preventDefault(): void
  stopImmediatePropagation(): void
}

interface Page {
  addEventListener?(
    type: 'unhandledrejection',
    listener: (event: RejectionEvent) => void,
    options: { readonly capture: boolean },
  ): void
}

/** Emitted by who wants to know whether somebody hushes already, be it another copy of this package. */
const IS_HUSHED = Symbol.for('@coji/durably-core/unheard')

/**
 * A job may have several things going on at once, and nobody can see from outside which of them it listens to at the moment: in
 * `const left = a(), right = b(); await left` nobody hears of `right` yet. That the run is interrupted there is told to whoever
 * still asks, and must not end the process, or be taken for an error, when nobody does. All other rejections go their way as ever.
 *
 * Called at each interruption: who has put another `process.emit` in place may since have put back what was there before.
 */
export function hushInterruptions(): void {
  const process = builtin<NodeProcess>('node:process')
  if (process?.emit(IS_HUSHED) === false) hushInNode(process)
  // As early as a browser lets it come: in Chromium who was there before hears all the same. Again is no second one.
  const page = globalThis as Page
  page.addEventListener?.('unhandledrejection', hushInPage, { capture: true })
}

function hushInPage(event: RejectionEvent): void {
  if (!isInterruption(event.reason)) return
  event.preventDefault()
  event.stopImmediatePropagation()
}

const hushed = new WeakSet<object>()

/**
 * A listener would change what Node does with the rejections of others, and would not keep those of the application from ours.
 * Who answers that an event was heard does neither.
 */
function hushInNode(process: NodeProcess): void {
  const { emit } = process
  process.emit = function (this: NodeProcess, type, ...args) {
    if (type === IS_HUSHED) return true
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

/** Also in what the job made of it: an error with it as its cause, or one for several that are nothing else. */
function isInterruption(thrown: unknown, depth = 0): boolean {
  if (brandOf(thrown)?.kind === 'ExecutionAbortedError') return true
  if (typeof thrown !== 'object' || thrown === null || depth === 8) return false
  try {
    const { cause, errors } = thrown as { readonly cause?: unknown; readonly errors?: unknown }
    if (!Array.isArray(errors) || errors.length === 0) return isInterruption(cause, depth + 1)
    return errors.every((error) => isInterruption(error, depth + 1))
  } catch {
    return false
  }
}
