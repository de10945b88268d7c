import { expect, it, onTestFinished } from 'vitest'
import { keepStaged, openFiles } from '../src/agent/session-files'
import { readApiConfig } from '../src/config'
import { openDatabase } from '../src/database/open'
import { createDatabase } from '../../../test/postgres'
import { ENV } from './deployment'

it('keeps what the start of a call has written whose result is kept, and nothing of its other starts', async () => {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  const { db, close } = await openDatabase(readApiConfig({ ...ENV, DATABASE_URL: database.url }))
  onTestFinished(close)
  await db.insertInto('users').values({ user_id: 'ada', name: 'Ada', issuer: 'demo', subject: 'ada' }).execute()
  await db.insertInto('sessions').values({ session_id: 's', user_id: 'ada', title: 'Chat' }).execute()
  const owner = { session_id: 's', user_id: 'ada' }
  const started = async (text: string) => {
    const files = openFiles(db, owner)
    await files.write('notes.md', Buffer.from(text))
    return files.stage('run/1.1')
  }
  // A worker that has lost its run writes after the one that has it.
  const [staged, late] = [await started('of the owner'), await started('of the one before')]
  expect(late).not.toBe(staged)
  const other = await openFiles(db, owner).stage('run/1.2')
  expect(other).toBe(null)

  await db.transaction().execute((trx) => keepStaged(trx, owner, { callKey: 'run/1.1', staged: staged ?? '' }))
  const kept = await openFiles(db, owner).read('notes.md')
  expect(Buffer.from(kept ?? []).toString()).toBe('of the owner')
  expect(await db.selectFrom('staged_files').selectAll().execute()).toEqual([])
})
