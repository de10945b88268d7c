import { InvalidOptionError, type OptionNames, refuseUnknownOptions, requireLabels } from '../base'

/** Runs go to the worker that the leader of a cluster chooses. */
export interface PlacementOptions {
  /** The worker must have these labels. */
  readonly labels: Readonly<Record<string, string>>
}

/** Who finds a worker for the runs of a job. `leader`: as `PlacementOptions`, without labels. */
export type PlacementBy = 'leader' | PlacementOptions

/** As a definition has it. */
export type JobPlacement = PlacementOptions

const OPTIONS: OptionNames<PlacementOptions> = { labels: true }

export function requirePlacement(given: PlacementBy | undefined, what: string): JobPlacement | null {
  if (given === undefined) return null
  if (given === 'leader') return { labels: {} }
  if (typeof given !== 'object' || given === null) {
    throw new InvalidOptionError(`${what}: placement must be 'leader' or { labels }, not ${String(given)}.`)
  }
  refuseUnknownOptions(`${what}: placement`, given, OPTIONS)
  return { labels: requireLabels(given.labels, `${what}: placement`) }
}

/** Whether a worker with these labels may run what wants those. */
export function hasLabels(own: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => Object.hasOwn(own, name) && own[name] === value)
}
