import type { SimProcess } from './sim-process'
import type { World } from './world'

export type Answered = { readonly answer: unknown } | { readonly error: unknown }

/** Something happened, to a process or to nobody in particular. */
export type Trace = (process: SimProcess | null, what: string, answered?: Answered) => void

export interface Tracer {
  readonly trace: Trace
  /** A number for all that happened, in its order. */
  fingerprint(): number
}

const SHOWN = 200

/** The story of a seed. Without a listener only its fingerprint is kept. */
export function createTracer(world: World, listener?: (line: string) => void): Tracer {
  let fingerprint = 0x811c9dc5
  const mix = (value: number) => {
    fingerprint = Math.imul(fingerprint ^ value, 0x01000193)
  }
  return {
    fingerprint: () => fingerprint >>> 0,
    trace(process, what, answered) {
      mix(world.now() * 1000)
      mix(process?.number ?? 0)
      for (let index = 0; index < what.length; index++) mix(what.charCodeAt(index))
      const line = `${world.now().toFixed(0).padStart(6)} p${process?.number ?? '-'} ${what}`
      listener?.(answered === undefined ? line : `${line} = ${show(answered)}`)
    },
  }
}

function show(answered: Answered): string {
  const text =
    'answer' in answered ? (JSON.stringify(answered.answer, leaveOut) ?? 'undefined') : String(answered.error)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text
}

/** Null and what never differs make the lines unreadable. */
function leaveOut(key: string, value: unknown): unknown {
  return value === null || ['tenant', 'labels', 'payload', 'createdAt', 'updatedAt', 'errorDetail'].includes(key)
    ? undefined
    : value
}
