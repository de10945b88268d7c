import type { Sighting } from './witness'

export interface VerdictParams {
  readonly runId: string
  /** Names of the steps in the database at the end. */
  readonly steps: readonly string[]
  /** Names of those that were there when the first worker was dead. */
  readonly recordedAtKill: readonly string[]
  readonly sightings: readonly Sighting[]
  readonly firstPid: number
}

/** What happened to the steps of one run, told by the witness file. */
export interface Verdict {
  readonly steps: number
  readonly ranOnce: number
  /** Recorded before the kill, and not run by the second worker. */
  readonly skipped: number
  readonly ranAgain: number
  /** What must never happen, in words. */
  readonly faults: readonly string[]
}

export function judge({ runId, steps, recordedAtKill, sightings, firstPid }: VerdictParams): Verdict {
  const seen = sightings.filter((sighting) => sighting.runId === runId)
  const starts = new Map<string, number>()
  for (const { stepName } of seen) starts.set(stepName, (starts.get(stepName) ?? 0) + 1)
  const ranLater = new Set(seen.filter(({ pid }) => pid !== firstPid).map(({ stepName }) => stepName))
  const ranTwiceThough = recordedAtKill.filter((name) => ranLater.has(name))
  const neverRan = steps.filter((name) => !starts.has(name))
  return {
    steps: steps.length,
    ranOnce: steps.filter((name) => starts.get(name) === 1).length,
    skipped: recordedAtKill.length - ranTwiceThough.length,
    ranAgain: steps.filter((name) => (starts.get(name) ?? 0) > 1).length,
    faults: [
      ...ranTwiceThough.map((name) => `"${name}" ran again although it was recorded`),
      ...neverRan.map((name) => `"${name}" is recorded but never ran`),
    ],
  }
}
