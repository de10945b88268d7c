import type { Run } from '@coji/durably'
import type { OpenDatabase } from '../database/open'

/** In words, what a run is doing or waits for: for people who have this command, and not the code, before them. */
export async function explain({ durably }: OpenDatabase, run: Run): Promise<string> {
  const words = ended(await durably.explain(run.id), run)
  return words.replace(UNKNOWN_HERE, 'a worker that knows the job.').replace(CALL, (_all, call, id) => {
    return call in COMMANDS ? `\`durably ${COMMANDS[call]} ${id}\`` : `durably.${call}("${id}") in the application`
  })
}

/** A message of a job may have no end of its own. */
function ended(words: string, { error }: Run): string {
  if (error === null || /[.!?:…]\s*$/.test(error)) return words
  return words.replace(`${error} durably.`, () => `${error}. durably.`)
}

/** No job is known here, and that is not worth a word. */
const UNKNOWN_HERE = /a worker that knows the job: this process does not\./

const CALL = /durably\.(\w+)\("([^"]+)"\)/g

const COMMANDS: Readonly<Record<string, string>> = {
  ...{ retry: 'retry', explain: 'run', unpark: 'unpark', failParked: 'unpark --fail' },
}
