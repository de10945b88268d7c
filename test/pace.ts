import { hostProcess } from './host-process.ts'

/** How many times slower this machine is than the one that times were chosen on, measured once by `machine-setup.ts`. */
const PACE = Number(hostProcess.env['DURABLY_PACE'] ?? 1)

/**
 * A time that a test has to let pass by the clock of the machine, such as a lease of another process: longer on a
 * machine that is slower, or has other work to do. Everything else waits for what happens.
 */
export function paced(ms: number): number {
  return Math.ceil(ms * PACE)
}

/** After so long something that a test waits for will never happen: a net, not a demand on the speed. */
export const PATIENCE_MS = 120_000

/** The same for a test that does something thousands of times. */
export const LONG_PATIENCE_MS = 7_200_000
