import { ConflictError } from '@coji/durably'
import { findRun } from '../database/find-run'
import { withDatabase } from '../database/open'
import type { CommonOptions } from '../options'
import { Misuse, Refusal } from '../refusal'
import { tame } from '../terminal/paint'
import type { Terminal } from '../terminal/terminal'

export interface SignalOptions extends CommonOptions {
  readonly dedupeKey?: string
}

interface Asked {
  readonly id: string
  readonly name: string
  /** JSON. */
  readonly payload: string | undefined
  readonly options: SignalOptions
}

/** `durably signal`: hands a run what it waits for, or will. */
export async function sendSignal({ id, name, payload, options }: Asked, terminal: Terminal): Promise<void> {
  const value = payload === undefined ? undefined : parsed(payload)
  await withDatabase(options, { writes: true }, async (database) => {
    const { durably } = database
    const run = await findRun(database, id)
    const { dedupeKey } = options
    const { deduplicated } = await durably
      .signal(run.id, name, value, dedupeKey === undefined ? {} : { dedupeKey })
      .catch((error: unknown) => {
        throw error instanceof ConflictError ? new Refusal(`Run ${run.id} is ${run.status}: nothing waits.`) : error
      })
    const awaited = run.waitingFor?.kind === 'steps' ? run.waitingFor.steps : []
    if (options.json === true) terminal.printJson({ id: run.id, name, deduplicated })
    else if (deduplicated) terminal.print(`Run ${run.id} had a signal with this key already. Nothing was done.`)
    else terminal.print(`Run ${run.id} of ${tame(run.jobName)} has the signal "${name}".`)
    if (!deduplicated && !awaited.includes(name)) terminal.note(keptFor(name, awaited))
  })
}

/** It may have a name of its own, other than that of the step. */
function keptFor(name: string, awaited: readonly string[]): string {
  const now = awaited.length === 0 ? 'waits for nothing' : `waits for ${awaited.map(tame).join(', ')}`
  return `It ${now} at present; the signal is kept until it waits for "${name}".`
}

function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch {
    throw new Misuse(`The payload is no JSON: ${payload}. A text stands in quotes of its own: '"${payload}"'.`)
  }
}
