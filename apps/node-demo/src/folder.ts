import { access, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

/** Where everything of one demo lies. */
export interface DemoFolder {
  readonly path: string
  readonly db: string
  readonly witness: string
  remove(): Promise<void>
}

export async function createDemoFolder(db: string | null): Promise<DemoFolder> {
  if (db !== null) await requireFolder(dirname(resolve(db)))
  const path = await mkdtemp(join(tmpdir(), 'durably-demo-'))
  return {
    path,
    db: db === null ? join(path, 'demo.db') : resolve(db),
    witness: join(path, 'witness.log'),
    remove: () => rm(path, { recursive: true, force: true, maxRetries: 5 }),
  }
}

async function requireFolder(path: string): Promise<void> {
  await access(path).catch(() => {
    throw new Error(`There is no folder ${path} for the database. Create it first.`)
  })
}
