import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** A step body that began, as the process that ran it saw it. */
export interface Sighting {
  readonly pid: number
  readonly runId: string
  readonly stepName: string
}

/** Written at once and synchronously: a line is there even when the process is killed a moment later. */
export function writeSighting(path: string, { pid, runId, stepName }: Sighting): void {
  appendFileSync(path, `${pid}\t${runId}\t${stepName}\n`)
}

export async function readSightings(path: string): Promise<Sighting[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const [pid = '', runId = '', stepName = ''] = line.split('\t')
    return { pid: Number(pid), runId, stepName }
  })
}
