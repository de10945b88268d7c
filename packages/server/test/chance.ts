/** Where chance begins in this process: it is told of where it matters, and `DURABLY_SEED` begins there again. */
export const SEED = Number(process.env['DURABLY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

/** An integer from 0 up to, not including, `below`. */
export function intBelow(random: () => number, below: number): number {
  return Math.floor(random() * below)
}
