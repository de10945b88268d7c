import type { MemoryStorage } from '@coji/durably-core/memory'
import type { MessageRecord, ScheduleRecord } from '@coji/durably-core/storage'
import { judgeLists } from './batch-witness'
import type { Witness } from './witness'

/** `alone` has its runs end when the next one comes. */
export const SCHEDULES = { often: 7000, seldom: 61_000, alone: 23_000 } as const

/** What was sent: twice under one key, or once without. */
export interface Sent {
  readonly keyed: Set<number>
  /** Only those whose sender heard that they were kept. */
  readonly unkeyed: Set<number>
  /** The entries of lists, of whose senders the same is true. */
  readonly listed: Set<string>
}

export interface Evidence {
  readonly storage: MemoryStorage
  readonly witness: Witness
  readonly sent: Sent
  /** Payloads of the runs that were triggered, as they began. */
  readonly begun: Begun
}

export interface Begun {
  readonly save: readonly string[]
  readonly list: readonly string[]
}

/** What has come of it all, when all faults are over and nothing is left to do. */
export async function judge({ storage, witness, sent, begun }: Evidence): Promise<readonly string[]> {
  const wrong = [...witness.wrong]
  for (const schedule of await storage.cluster.schedules.list({})) wrong.push(...judgeSchedule(schedule, witness))
  const messages = await storage.cluster.inbox.list({})
  wrong.push(...judgeArrival(messages, sent), ...judgeDelivery(messages, witness))
  wrong.push(...judgeLists(witness.lists, sent.listed, begun.list))
  for (const [key, payload] of witness.lastArrived) {
    const last = begun.save.filter((text) => (JSON.parse(text) as { readonly key: string }).key === key).at(-1)
    if (last !== payload) wrong.push(`the last run of ${key} had ${last} instead of ${payload}`)
  }
  return [...new Set(wrong)]
}

function judgeSchedule(schedule: ScheduleRecord, { fired, backfilled }: Witness) {
  const { id, name, createdAt, firedUntil } = schedule
  const every = SCHEDULES[name as keyof typeof SCHEDULES]
  const expected: string[] = []
  for (let at = Date.parse(createdAt) + every; at <= Date.parse(firedUntil); at += every) {
    expected.push(new Date(at).toISOString())
  }
  const byHand = (backfilled.get(id) ?? []).filter((instant) => instant <= firedUntil)
  const all = [...new Set([...(fired.get(id) ?? []), ...byHand])].sort()
  const wrong = expected.length === 0 ? [`${name} never fired`] : []
  if (schedule.overlap === 'cancel') return [...wrong, ...judgeMadeWay(schedule, expected, all)]
  return all.join() === expected.join()
    ? wrong
    : [...wrong, `${name} fired at ${all.join()} instead of ${expected.join()}`]
}

/** Of instants that came together the last one has fired, and the others are counted. */
function judgeMadeWay(
  { name, firedUntil, missed }: ScheduleRecord,
  expected: readonly string[],
  fired: readonly string[],
) {
  const isKnown = fired.every((instant) => expected.includes(instant))
  const isCounted = fired.length + missed === expected.length
  if (isKnown && isCounted && fired.at(-1) === firedUntil) return []
  return [`${name} fired at ${fired.join()} and missed ${missed} of ${expected.join()} up to ${firedUntil}`]
}

/** Each of those that were kept is there, once. */
function judgeArrival(messages: readonly MessageRecord[], { keyed, unkeyed }: Sent): readonly string[] {
  const numbers = messages.map(({ payload }) => Number(payload))
  const lost = [...keyed, ...unkeyed].filter((number) => !numbers.includes(number))
  const doubled = numbers.filter((number, index) => numbers.indexOf(number) !== index)
  return [
    ...lost.map((number) => `message ${number} is lost`),
    ...doubled.map((number) => `message ${number} is twice`),
  ]
}

/** Each was delivered once, and once more for each time that it was sent out anew. */
function judgeDelivery(messages: readonly MessageRecord[], { payloads, gathered }: Witness): readonly string[] {
  const wrong = messages.filter(({ processedAt }) => processedAt === null).map(({ id }) => `message ${id} waits`)
  const wanted = inOrder(messages.flatMap(({ payload, round }) => Array<number>(round + 1).fill(Number(payload))))
  for (const job of ['each', 'all']) {
    const got = inOrder((payloads.get(job) ?? []).flatMap((text) => JSON.parse(text) as number | number[]))
    if (got !== wanted) wrong.push(`${job} got ${got} instead of ${wanted}`)
  }
  for (const [id, count] of gathered) if (count !== 1) wrong.push(`${id} was released ${count} times`)
  return wrong
}

function inOrder(numbers: readonly number[]): string {
  return [...numbers].sort((a, b) => a - b).join()
}
