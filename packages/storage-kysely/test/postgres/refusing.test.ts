import { expect, it } from 'vitest'
import { createKyselyStorage, type DurablyDialect } from '../../src'
import { postgres } from '../../src/drivers/postgres'
import { newRun } from '../builders'
import { useOwnStorage } from './own-storage'

const own = useOwnStorage()

const idsOf = async () =>
  (await own.watch.query<{ readonly id: string }>('select id from durably_runs order by id')).map(({ id }) => id)

it('a list that is sent again takes back nothing that it had created before', async () => {
  const holder = newRun({ idempotencyKey: 'k', payload: '1' })
  await own.storage.enqueue([holder])
  const list = [newRun(), newRun({ idempotencyKey: 'k', payload: '1', onConflict: 'reject' })]
  await own.storage.enqueue(list)
  await own.watch.query('delete from durably_runs where id = $1', [holder.id])
  const another = newRun({ idempotencyKey: 'k', payload: '2' })
  await own.storage.enqueue([another])
  const there = await idsOf()
  await expect(own.storage.enqueue(list)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await idsOf()).toEqual(there)
  await own.watch.query('delete from durably_runs where id = $1', [another.id])
  expect(await own.storage.enqueue(list)).toMatchObject([{ created: true }, { created: true }])
  expect(await idsOf()).toEqual(list.map(({ id }) => id).sort())
})

it('looks at each answer of the database a few times, however many there are', async () => {
  let looks = 0
  const countLooks = (row: Record<string, unknown>) =>
    new Proxy(row, {
      get(target, name) {
        looks += 1
        return target[String(name)]
      },
    })
  const inner = postgres({ connectionString: own.database.url, listen: false })
  const { batch } = inner.durablyHooks
  const dialect: DurablyDialect = {
    ...inner,
    durablyHooks: {
      ...inner.durablyHooks,
      batch: async (queries, waitMs, sender) =>
        ((await batch?.(queries, waitMs, sender)) ?? []).map((rows) => rows.map((row) => countLooks({ ...row }))),
    },
  }
  const counted = createKyselyStorage({ dialect })
  const looksFor = async (count: number) => {
    const runs = Array.from({ length: count }, (_, n) => newRun({ idempotencyKey: `${n}`, onConflict: 'reject' }))
    looks = 0
    expect(await counted.enqueue(runs)).toHaveLength(count)
    return looks / count
  }
  const few = await looksFor(10)
  expect(await looksFor(300)).toBeLessThan(few * 2)
  await counted.close()
})
