import { InvalidOptionError } from '@coji/durably-core'
import type { CommandOptions, Run, RunCommands, RunForks } from '@coji/durably-core'
import { encodeValue } from '@coji/durably-core/extend'
import { pathOf } from './reads'
import type { Transport } from './transport'

/** What an operator does to runs, without what is for those who run the database. Who does it, the server says. */
export type ClientCommands = Omit<RunCommands, 'purge'> & RunForks

export function createCommands(transport: Transport): ClientCommands {
  const command = (name: string) => async (id: string, options?: CommandOptions) => {
    refuseName(options)
    return transport.write<Run>('POST', pathOf(id, `/${name}`))
  }
  return {
    cancel: command('cancel'),
    retry: command('retry'),
    unpark: command('unpark'),
    failParked: command('fail'),
    deleteRun: async (id, options) => {
      refuseName(options)
      return transport.write<undefined>('DELETE', pathOf(id))
    },
    fork: async (id, { after, payload } = {}) => {
      return transport.write('POST', pathOf(id, '/fork'), withPayload({ after }, payload, 'The payload of a fork'))
    },
    signal: async (id, name, ...[payload, { dedupeKey, as } = {}]) => {
      refuseName({ as })
      const body = withPayload({ name, dedupeKey }, payload, `The payload of signal "${name}"`)
      return transport.write('POST', pathOf(id, '/signal'), body)
    },
  }
}

function refuseName(options: CommandOptions | undefined): void {
  if (options?.as === undefined) return
  throw new InvalidOptionError('as is not for a client: authorize() of the server says who does it.')
}

/** What JSON would change is refused here already, as the engine refuses it. */
export function withPayload(fields: object, payload: unknown, what: string): string {
  const text = encodeValue(payload, what)
  const others = JSON.stringify(fields).slice(1, -1)
  return `{${[others, ...(text === null ? [] : [`"payload":${text}`])].filter(Boolean).join()}}`
}
