import type { Clock } from './environment'

/**
 * Does something again and again: each round says in how many milliseconds the next one is, and takes its own trouble
 * somewhere. Returns how to stop, which waits for the round in progress.
 */
export function goRounds(
  clock: Pick<Clock, 'schedule'>,
  firstAfterMs: number,
  round: () => Promise<number>,
): () => Promise<void> {
  let isOver = false
  let going = Promise.resolve()
  let callOff = clock.schedule(firstAfterMs, go)

  function go(): void {
    going = round().then((waitMs) => {
      if (!isOver) callOff = clock.schedule(waitMs, go)
    })
  }

  return () => {
    isOver = true
    callOff()
    return going
  }
}
