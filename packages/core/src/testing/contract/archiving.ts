import type { EndCursor, LogRecord } from '../../port'
import { assert, assertEqual } from '../assert'
import { FAR_MS, newId, newLog } from './builders'
import { casesOf } from './contract-case'
import type { Holder } from './holder'
import type { Kit } from './kit'

/** A run that has ended with so many logs. */
async function endedRun(kit: Kit, logs = 1, over: { readonly jobName?: string } = {}): Promise<Holder> {
  const holder = await kit.start(over)
  await holder.leave('fail', {}, { logs: Array.from({ length: logs }, (_, index) => newLog({ message: `${index}` })) })
  return holder
}

/** Those that ended any time ago and have logs. */
async function logged(kit: Kit, limit = 100): Promise<string[]> {
  const ids: string[] = []
  for (let after: EndCursor | null = null; ; ) {
    const { runs, last } = await kit.archiving.findLogged({ olderThanMs: -FAR_MS, after, limit })
    ids.push(...runs.map(({ id }) => id))
    if (last === null) return ids
    after = last
  }
}

async function referTo(kit: Kit, runId: string, name = newId()): Promise<string> {
  await kit.archiving.announce(name)
  const { version } = await kit.run(runId)
  assertEqual(await kit.archiving.refer({ runId, version, name }), true, 'whether the run refers to the name')
  return name
}

async function lastOf(kit: Kit, runId: string): Promise<string> {
  const last = (await kit.logs.getLogs(runId, {})).at(-1)
  assert(last !== undefined, 'the run should have logs')
  return last.id
}

/** Its logs are in the archive, under this name, and nowhere else. */
async function archive(kit: Kit, runId: string): Promise<string> {
  const last = await lastOf(kit, runId)
  const name = await referTo(kit, runId)
  const isOver = await kit.archiving.removeArchived({ runId, name, last, limit: 100 })
  assertEqual(isOver, true, 'whether all of them were removed')
  return name
}

const NEVER = { announcedForMs: FAR_MS, limit: 100 }
const ALL = { announcedForMs: -FAR_MS, limit: 100 }

async function strays(kit: Kit, params = NEVER): Promise<readonly string[]> {
  return [...(await kit.archiving.giveUp(params))].sort()
}

const messages = (logs: readonly LogRecord[]) => logs.map(({ message }) => message)

export const ARCHIVING_CASES = casesOf('archiving', 'archiving', {
  'ended runs with logs are found, oldest first, page by page': async (kit) => {
    const ids: string[] = []
    for (const logs of [1, 0, 2, 0, 0, 1]) {
      const { id } = await endedRun(kit, logs)
      if (logs > 0) ids.push(id)
    }
    const running = await kit.start()
    await running.commit({ logs: [newLog()] })
    for (const limit of [1, 2, 100]) assertEqual(await logged(kit, limit), ids, `runs found ${limit} at a time`)
    const young = await kit.archiving.findLogged({ olderThanMs: FAR_MS, after: null, limit: 100 })
    assertEqual(young, { runs: [], last: null }, 'runs that ended an hour ago')
  },

  'a run refers to a name, and its logs leave the database': async (kit) => {
    const [one, other] = [await endedRun(kit, 3), await endedRun(kit, 1)]
    assertEqual((await kit.run(one.id)).logRef, null, 'name before')
    const before = await kit.run(one.id)
    const name = await archive(kit, one.id)
    const { logRef, version, updatedAt, ...run } = await kit.run(one.id)
    assertEqual(logRef, name, 'name')
    assert(version > before.version, 'version should have grown')
    const { logRef: _none, version: _old, updatedAt: _then, ...same } = before
    assertEqual(run, same, 'the rest of the run')
    assertEqual(await kit.logs.getLogs(one.id, {}), [], 'its logs')
    assertEqual((await kit.logs.getLogs(other.id, {})).length, 1, "the other run's logs")
    assertEqual(await logged(kit), [other.id], 'runs that have logs')
    assertEqual(await strays(kit, ALL), [], 'names without a run')
  },

  'logs that are in the archive are shown by it alone, whoever dies while they are removed': async (kit) => {
    const { id: runId } = await endedRun(kit, 5, { jobName: 'job' })
    const last = await lastOf(kit, runId)
    const unarchived = async (last: string | null) => messages(await kit.archiving.getUnarchived(runId, { last }))
    assertEqual(await unarchived(null), ['0', '1', '2', '3', '4'], 'what an archive has not that has nothing')
    const name = await referTo(kit, runId)
    const left: (readonly string[])[] = []
    for (let isOver = false; !isOver; ) {
      await kit.reopen()
      assertEqual(await unarchived(last), [], 'what the archive has not')
      left.push(messages(await kit.logs.getLogs(runId, {})))
      isOver = await kit.archiving.removeArchived({ runId, name, last, limit: 2 })
    }
    assertEqual(left, [['0', '1', '2', '3', '4'], ['2', '3', '4'], ['4']], 'what the database has')
    assertEqual(messages(await kit.logs.getLogs(runId, {})), [], 'what it has in the end')
    assertEqual(await kit.archiving.removeArchived({ runId, name, last, limit: 2 }), true, 'when nothing is left')
  },

  'what a run logs that is tried again meanwhile is not in the archive': async (kit) => {
    const { id: runId } = await endedRun(kit, 3, { jobName: 'job' })
    const last = await lastOf(kit, runId)
    const name = await referTo(kit, runId)
    const remove = () => kit.archiving.removeArchived({ runId, name, last, limit: 2 })
    assertEqual(await remove(), false, 'whether the first two were all')
    await kit.order('retry', runId)
    const holder = await kit.hold()
    await holder.leave('complete', {}, { logs: [newLog({ message: 'x' }), newLog({ message: 'y' })] })
    const unarchived = async (limit?: number) =>
      messages(await kit.archiving.getUnarchived(runId, { last, ...(limit !== undefined && { limit }) }))
    assertEqual([await unarchived(), await unarchived(1)], [['x', 'y'], ['x']], 'before the last one is removed')
    assertEqual(await remove(), true, 'whether that was the last one')
    assertEqual([await unarchived(), await unarchived(1)], [['x', 'y'], ['x']], 'after it')
    assertEqual(await remove(), true, 'once more')
    assertEqual(await unarchived(), ['x', 'y'], 'in the end')
    assertEqual(await kit.archiving.getUnarchived(runId, { last, tenant: 'other' }), [], 'for another tenant')
  },

  'nothing is removed for a name to which the run does not refer': async (kit) => {
    const { id: runId } = await endedRun(kit, 2)
    const last = await lastOf(kit, runId)
    const remove = (name: string) => kit.archiving.removeArchived({ runId, name, last, limit: 1 })
    assertEqual(await remove(newId()), true, 'before it refers to one')
    const name = await referTo(kit, runId)
    assertEqual(await remove(newId()), true, 'another name')
    assertEqual((await kit.logs.getLogs(runId, {})).length, 2, 'logs')
    assertEqual([await remove(name), await remove(name)], [false, true], 'its own name')
  },

  'two who remove the same logs at once remove them all': async (kit) => {
    const { id: runId } = await endedRun(kit, 7)
    const last = await lastOf(kit, runId)
    const name = await referTo(kit, runId)
    const removeAll = async () => {
      while (!(await kit.archiving.removeArchived({ runId, name, last, limit: 2 })));
    }
    await Promise.all([removeAll(), removeAll()])
    assertEqual(await kit.logs.getLogs(runId, {}), [], 'logs')
  },

  'nothing happens to a run that has changed, or goes on': async (kit) => {
    const holder = await endedRun(kit, 2, { jobName: 'job' })
    const { version } = await kit.run(holder.id)
    const name = newId()
    await kit.archiving.announce(name)
    const refer = (changes = {}) => kit.archiving.refer({ runId: holder.id, version, name, ...changes })
    assertEqual(await refer({ version: version - 1 }), false, 'an older version')
    assertEqual(await refer({ runId: newId() }), false, 'an unknown run')
    const retried = await kit.order('retry', holder.id)
    assertEqual(await refer(), false, 'the version before the retry')
    assertEqual(await refer({ version: retried.version }), false, 'a run that waits')
    const again = await kit.hold()
    assertEqual(await refer({ version: again.run.version }), false, 'a run that runs')
    await again.leave('complete', {}, { logs: [newLog({ message: 'again' })] })
    assertEqual(messages(await kit.logs.getLogs(holder.id, {})), ['0', '1', 'again'], 'logs')
    assertEqual((await kit.run(holder.id)).logRef, null, 'name')
  },

  'of two that archive a run one wins': async (kit) => {
    const { id: runId } = await endedRun(kit, 2)
    const { version } = await kit.run(runId)
    const names = [newId(), newId()]
    for (const name of names) await kit.archiving.announce(name)
    const answers = await Promise.all(names.map((name) => kit.archiving.refer({ runId, version, name })))
    assertEqual([...answers].sort(), [false, true], 'whether the run refers to the names')
    const [winner, loser] = answers[0] === true ? names : [...names].reverse()
    assertEqual((await kit.run(runId)).logRef, winner, 'name')
    assertEqual(await strays(kit, ALL), [loser], 'names without a run')
  },

  'of referring to a name and giving it up at once one wins': async (kit) => {
    for (let round = 0; round < 6; round++) {
      const { id: runId } = await endedRun(kit)
      const { version } = await kit.run(runId)
      const name = newId()
      await kit.archiving.announce(name)
      const [isReferred] = await Promise.all([kit.archiving.refer({ runId, version, name }), kit.archiving.giveUp(ALL)])
      assertEqual((await strays(kit)).includes(name), !isReferred, 'whether the name was given up')
    }
  },

  'of referring to a name and removing or retrying the run at once nothing is lost': async (kit) => {
    for (let round = 0; round < 6; round++) {
      const { id: runId } = await endedRun(kit)
      const { version } = await kit.run(runId)
      const name = newId()
      await kit.archiving.announce(name)
      const kind = round % 2 === 0 ? 'remove' : 'retry'
      const [isReferred] = await Promise.all([kit.archiving.refer({ runId, version, name }), kit.order(kind, runId)])
      const run = await kit.storage.getRun(runId)
      const isKnown = (await strays(kit, ALL)).includes(name) || run?.logRef === name
      assert(isKnown, `the name should be known after ${kind}`)
      if (run !== null) assertEqual(run.logRef, isReferred ? name : null, 'name of the run')
      if (run !== null) assertEqual((await kit.logs.getLogs(runId, {})).length, 1, 'logs')
    }
  },

  'what was not announced, or was given up, is not referred to': async (kit) => {
    const { id: runId } = await endedRun(kit)
    const { version } = await kit.run(runId)
    const name = newId()
    assertEqual(await kit.archiving.refer({ runId, version, name }), false, 'a name that nobody announced')
    await kit.archiving.announce(name)
    assertEqual(await strays(kit), [], 'names given up too early')
    assertEqual(await strays(kit, ALL), [name], 'names given up')
    assertEqual(await kit.archiving.refer({ runId, version, name }), false, 'a name that was given up')
    assertEqual(await strays(kit), [name], 'names given up, asked again')
    await kit.archiving.forget([name, newId()])
    assertEqual(await strays(kit), [], 'names that are not forgotten')
    assertEqual(await kit.archiving.refer({ runId, version, name }), false, 'a name that was forgotten')
    assertEqual(messages(await kit.logs.getLogs(runId, {})), ['0'], 'logs')
  },

  'a run that was tried again and has ended refers to another name': async (kit) => {
    const { id } = await endedRun(kit, 2, { jobName: 'job' })
    const first = await archive(kit, id)
    await kit.order('retry', id)
    const holder = await kit.hold()
    assertEqual(holder.run.logRef, first, 'name while it runs')
    await holder.leave('complete', {}, { logs: [newLog({ message: 'again' })] })
    assertEqual(messages(await kit.logs.getLogs(id, {})), ['again'], 'logs')
    assertEqual(await logged(kit), [id], 'runs that have logs')
    const second = await referTo(kit, id)
    assertEqual((await kit.run(id)).logRef, second, 'name in the end')
    assertEqual(await strays(kit), [first], 'names without a run')
  },

  'what a deleted or purged run referred to is told until it is forgotten': async (kit) => {
    const [deleted, purged, kept] = [await endedRun(kit), await endedRun(kit), await endedRun(kit)]
    const names = [await referTo(kit, deleted.id), await referTo(kit, purged.id)].sort()
    await kit.order('remove', deleted.id)
    assertEqual(await kit.storage.purge({ statuses: ['failed'], limit: 1 }), 1, 'runs purged')
    assertEqual(await strays(kit), names, 'names without a run')
    assertEqual(await strays(kit, { ...NEVER, limit: 1 }), names.slice(0, 1), 'one of them')
    await kit.reopen()
    assertEqual(await strays(kit), names, 'names without a run after a kill')
    await kit.archiving.forget(names)
    assertEqual(await strays(kit), [], 'names in the end')
    assertEqual((await kit.run(kept.id)).logRef, null, 'name of the run that stays')
  },

  'names are there after a kill': async (kit) => {
    const [one, other] = [await endedRun(kit), await endedRun(kit)]
    const name = await referTo(kit, one.id)
    await kit.reopen()
    assertEqual((await kit.run(one.id)).logRef, name, 'name')
    const { version } = await kit.run(other.id)
    const announced = newId()
    await kit.archiving.announce(announced)
    await kit.reopen()
    assertEqual(
      await kit.archiving.refer({ runId: other.id, version, name: announced }),
      true,
      'whether the run refers to what was announced before the kill',
    )
  },
})
