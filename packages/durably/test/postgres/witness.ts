import { existsSync, readFileSync } from 'node:fs'

export interface BodyStart {
  readonly pid: number
  readonly runId: string
  readonly stepName: string
  readonly epoch: number
  /** By the clock of the process that ran it. */
  readonly at: number
}

export function readBodyStarts(file: string): readonly BodyStart[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const [pid = '', runId = '', stepName = '', epoch = '', at = ''] = line.split('\t')
    return { pid: Number(pid), runId, stepName, epoch: Number(epoch), at: Number(at) }
  })
}
