import { existsSync, readFileSync } from 'node:fs'

/** A body that began. */
export interface Sighting {
  readonly pid: number
  readonly runId: string
  readonly stepName: string
}

/** Everything that bodies wrote to a witness file, in order. The database cannot testify for itself. */
export function readSightings(file: string): readonly Sighting[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.map((line) => {
    const [pid = '', runId = '', stepName = ''] = line.split('\t')
    return { pid: Number(pid), runId, stepName }
  })
}

export function bodyOf({ runId, stepName }: Pick<Sighting, 'runId' | 'stepName'>): string {
  return `${runId}/${stepName}`
}

/** How often each body began. */
export function countBodies(sightings: readonly Sighting[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const sighting of sightings) counts.set(bodyOf(sighting), (counts.get(bodyOf(sighting)) ?? 0) + 1)
  return counts
}
