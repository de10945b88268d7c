import { randomUUID } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Tables } from '../database/tables'
import { troubleWithFile, troubleWithPath } from '../files/session-file'
import type { SessionFiles } from '../tools/tool'

interface Owner {
  readonly session_id: string
  readonly user_id: string
}

/** Files as one call sees them: what it writes is held back until `stage`. */
export interface FilesOfCall extends SessionFiles {
  /**
   * Puts what was written where `keepStaged` finds it, and says where: no other start of the call, on a worker that has lost
   * its run perhaps, writes there. `null` when nothing was written.
   */
  stage(callKey: string): Promise<string | null>
}

export function openFiles(db: Kysely<Tables>, owner: Owner): FilesOfCall {
  const written = new Map<string, Buffer | null>()
  const stored = () =>
    db.selectFrom('session_files').where('session_id', '=', owner.session_id).where('user_id', '=', owner.user_id)
  async function sizes(): Promise<Map<string, number>> {
    const found = await stored().select(['path', 'size']).orderBy('path').execute()
    const all = new Map(found.map(({ path, size }) => [path, size]))
    for (const [path, content] of written) {
      if (content === null) all.delete(path)
      else all.set(path, content.length)
    }
    return all
  }
  return {
    async list() {
      const all = await sizes()
      return [...all].map(([path, size]) => ({ path, size })).sort((a, b) => (a.path < b.path ? -1 : 1))
    },
    async read(given) {
      const path = requirePath(given)
      const own = written.get(path)
      if (own !== undefined) return own
      return (await stored().where('path', '=', path).select('content').executeTakeFirst())?.content ?? null
    },
    async write(given, bytes) {
      const path = requirePath(given)
      const others = [...(await sizes())].map(([path, size]) => ({ path, size }))
      const trouble = troubleWithFile({ path, size: bytes.length }, others)
      if (trouble !== null) throw new Error(trouble)
      written.set(path, Buffer.from(bytes))
    },
    async remove(given) {
      written.set(requirePath(given), null)
    },
    stage: (callKey) => stage(db, { ...owner, call_key: callKey }, written),
  }
}

/** A plain relative path, the same on every system. */
export function requirePath(path: string): string {
  const trouble = troubleWithPath(path)
  if (trouble !== null) throw new Error(`${JSON.stringify(path)} is no path of a session: ${trouble}.`)
  return path
}

async function stage(
  db: Kysely<Tables>,
  owner: Owner & { readonly call_key: string },
  written: ReadonlyMap<string, Buffer | null>,
): Promise<string | null> {
  if (written.size === 0) return null
  const { session_id, user_id } = owner
  const call_key = `${owner.call_key}/${randomUUID()}`
  const rows = [...written].map(([path, content]) => ({ call_key, session_id, user_id, path, content }))
  await db.insertInto('staged_files').values(rows).execute()
  return call_key
}

interface Staged {
  readonly callKey: string
  /** Where the start of the call put them whose result is kept. */
  readonly staged: string | undefined
}

/** Makes what a call has staged the files of the session, in the transaction that keeps the result of the call. */
export async function keepStaged(trx: Transaction<Tables>, owner: Owner, { callKey, staged }: Staged): Promise<void> {
  const found = await trx
    .deleteFrom('staged_files')
    .where('call_key', 'like', `${callKey}/%`)
    .where('user_id', '=', owner.user_id)
    .returning(['call_key', 'path', 'content'])
    .execute()
  for (const { call_key, path, content } of found) {
    if (call_key !== staged) continue
    if (content === null) await removeFile(trx, owner, path)
    else await writeFile(trx, owner, { path, content })
  }
}

async function removeFile(trx: Transaction<Tables>, owner: Owner, path: string): Promise<void> {
  await trx
    .deleteFrom('session_files')
    .where('session_id', '=', owner.session_id)
    .where('user_id', '=', owner.user_id)
    .where('path', '=', path)
    .execute()
}

async function writeFile(
  trx: Transaction<Tables>,
  { session_id, user_id }: Owner,
  { path, content }: { readonly path: string; readonly content: Buffer },
): Promise<void> {
  const updated_at = new Date()
  await trx
    .insertInto('session_files')
    .values({ session_id, user_id, path, content, updated_at })
    .onConflict((conflict) => conflict.columns(['session_id', 'path']).doUpdateSet({ content, updated_at }))
    .execute()
}
