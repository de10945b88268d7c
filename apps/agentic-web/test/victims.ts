import type { OwnPostgres } from '../../../test/postgres'
import type { Processes } from './processes'

/** Who goes away in the middle of an answer, one after the other. */
export const VICTIMS = ['api-1', 'web-1', 'the worker', 'api-2 by SIGTERM', 'Postgres'] as const
export type Victim = (typeof VICTIMS)[number]

/** After one of so many chunks of an answer: no divisor of the number of victims, so that each goes after each of them. */
export const CHUNKS = 4

/** Where to read: at an api that is about to go, and elsewhere then; else through the proxy, as everybody. */
export function waysTo(victim: Victim, { apiUrls, webUrl }: Processes): readonly string[] {
  const api = /^api-(\d)/.exec(victim)?.[1]
  return api === undefined ? [webUrl] : [apiUrls[Number(api) - 1] ?? '', webUrl]
}

interface Around {
  readonly processes: Processes
  readonly postgres: OwnPostgres
  /** The worker that has the run. */
  readonly holder: string
}

/** Answers whose return is to be waited for. */
export async function strike(victim: Victim, { processes, postgres, holder }: Around): Promise<readonly string[]> {
  if (victim === 'Postgres') {
    await postgres.restart('immediate')
    return processes.places.map(({ name }) => name)
  }
  const [name = '', , signal = 'SIGKILL'] = victim === 'the worker' ? [holder] : victim.split(' ')
  await processes.kill(name, signal as NodeJS.Signals)
  return [name]
}
