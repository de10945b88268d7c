import type { ScriptPolicy } from './scripts'

/** The longest delay after so many tries. */
export function boundOf({ delay }: ScriptPolicy, tries: number): number {
  if (typeof delay === 'number') return delay
  const { from = 1000, factor = 2, upTo = 60_000 } = delay
  return Math.min(upTo, from * factor ** (tries - 1))
}

export function isRightDelay(policy: ScriptPolicy, tries: number, delayMs: number): boolean {
  const bound = boundOf(policy, tries)
  return typeof policy.delay === 'number' ? delayMs === bound : delayMs >= 0 && delayMs <= Math.round(bound)
}
