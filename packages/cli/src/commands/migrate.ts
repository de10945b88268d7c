import type { SchemaReport } from '@coji/durably/storage'
import { withDatabase } from '../database/open'
import type { CommonOptions } from '../options'
import type { Terminal } from '../terminal/terminal'
import { count } from '../terminal/words'

export interface MigrateOptions extends CommonOptions {
  readonly dryRun?: boolean
}

/** `durably migrate` */
export function migrateTables(options: MigrateOptions, terminal: Terminal): Promise<void> {
  const isDry = options.dryRun === true
  return withDatabase(options, { writes: !isDry, anyVersion: true }, async ({ durably, name }) => {
    const { storage } = durably
    const before = await storage.reportSchema()
    // Refuses tables that are too new, whoever asks.
    if (!isDry || before.minReader > before.newest.version) await storage.migrate()
    const to = Math.max(before.version, before.newest.version)
    if (options.json === true) terminal.printJson({ database: name, from: before.version, to, applied: !isDry })
    else terminal.print(isDry ? plan(name, before) : outcome(name, before))
  })
}

function plan(name: string, { version, minReader, newest }: SchemaReport): string {
  if (version >= newest.version) return `${name} has version ${version} already: there is nothing to do.`
  if (version === 0) return `${name} has no tables of durably. They would be made, in version ${newest.version}.`
  const steps = count(newest.version - version, 'migration')
  const stopped =
    newest.minReader > Math.max(version, minReader)
      ? ` Workers whose code knows less than version ${newest.minReader} would stop claiming within a minute.`
      : ' Workers that run now would go on.'
  return `${name} has version ${version}; ${steps} would bring it to ${newest.version}.${stopped}`
}

function outcome(name: string, { version, newest }: SchemaReport): string {
  if (version >= newest.version) return `${name} has version ${version} already: nothing was done.`
  return `${name} now has version ${newest.version}${version === 0 ? '' : `, up from ${version}`}.`
}
