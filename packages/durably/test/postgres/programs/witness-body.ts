import { appendFileSync } from 'node:fs'

export interface SeenBody {
  readonly runId: string
  readonly stepName: string
  readonly epoch: number
}

/** A body that began, as the process that ran it saw it. The file is opened with O_APPEND: lines never mix. */
export function witnessBody(file: string, { runId, stepName, epoch }: SeenBody): void {
  appendFileSync(file, `${[process.pid, runId, stepName, epoch, Date.now()].join('\t')}\n`)
}
