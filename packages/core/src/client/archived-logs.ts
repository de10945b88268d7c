import { LogArchiveError } from '../base'
import type { Engine } from '../engine'
import type { LogPlace, LogRecord, LogStorage, RunRecord, Scope } from '../port'

interface Part {
  readonly after?: string
  readonly limit?: number
}

/** What the archive has of the run comes first: everything else in the database was logged after it. */
export async function readLogs(
  engine: Engine,
  group: LogStorage,
  { runId, scope, part }: { readonly runId: string; readonly scope: Scope; readonly part: Part },
): Promise<readonly LogRecord[]> {
  const { storage } = engine
  if (storage.archiving === undefined) return group.getLogs(runId, { ...part, ...scope })
  for (let run = await storage.getRun(runId, scope); run !== null; ) {
    const logs = await logsOf({ engine, group, run, part }).catch((error: unknown) => ({ error }))
    const again = await storage.getRun(runId, scope)
    // Logs that go to the archive meanwhile may be in neither of the two looks.
    if (again?.logRef === run.logRef) {
      if ('error' in logs) throw logs.error
      return logs
    }
    run = again
  }
  return []
}

interface Look {
  readonly engine: Engine
  readonly group: LogStorage
  readonly run: RunRecord
  readonly part: Part
}

async function logsOf({ engine, group, run, part }: Look): Promise<readonly LogRecord[]> {
  const { after, limit = Number.POSITIVE_INFINITY } = part
  const { archiving } = engine.storage
  if (run.logRef == null || archiving === undefined) return group.getLogs(run.id, part)
  const archived: LogRecord[] = []
  let isAfter = after === undefined
  let last: string | null = null
  for await (const page of archivedPages(engine, run)) {
    for (const log of page) {
      last = log.id
      if (isAfter) archived.push(log)
      else isAfter = log.id === after
      if (archived.length === limit) return archived
    }
  }
  if (!isAfter) return group.getLogs(run.id, part)
  const rest = limit === Number.POSITIVE_INFINITY ? {} : { limit: limit - archived.length }
  return [...archived, ...(await archiving.getUnarchived(run.id, { ...rest, last }))]
}

async function* archivedPages(engine: Engine, { id, logRef }: RunRecord): AsyncIterable<readonly LogRecord[]> {
  if (logRef == null) return
  const archive = engine.plugins.logArchive()
  if (archive === undefined) {
    throw new LogArchiveError(
      'no-archive',
      `The logs of run ${id} are in an archive, as "${logRef}". This instance has none: durably.use(withLogRetention({ archive })).`,
    )
  }
  yield* archive.read(logRef)
}

/** Logs of any runs, wherever they are; those that cannot be had say why. */
export async function findLogs(engine: Engine, places: readonly LogPlace[]): Promise<readonly LogRecord[]> {
  const { storage } = engine
  if (places.length === 0 || storage.logs === undefined) return []
  const found = [...(await storage.logs.findLogs(places))]
  const foundIds = new Set(found.map(({ id }) => id))
  const missing = storage.archiving === undefined ? [] : places.filter(({ id }) => !foundIds.has(id))
  for (const runId of new Set(missing.map((place) => place.runId))) {
    const wanted = new Set(missing.filter((place) => place.runId === runId).map(({ id }) => id))
    const run = await storage.getRun(runId)
    if (run !== null) found.push(...(await findArchived(engine, run, wanted)))
  }
  return found
}

async function findArchived(engine: Engine, run: RunRecord, wanted: Set<string>): Promise<readonly LogRecord[]> {
  const found: LogRecord[] = []
  try {
    for await (const page of archivedPages(engine, run)) {
      for (const log of page) if (wanted.delete(log.id)) found.push(log)
      if (wanted.size === 0) return found
    }
    return found
  } catch (error) {
    if (!(error instanceof LogArchiveError)) throw error
    const why = { stepName: null, level: 'info', message: `[${error.message}]`, data: null, timestamp: '' } as const
    return [...found, ...[...wanted].map((id) => ({ id, runId: run.id, ...why }))]
  }
}
