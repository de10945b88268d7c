import type { MemoryStorage } from '@coji/durably-core/memory'
import type { BatchedRun, EnqueueAnswer, NewRun, RunRecord } from '@coji/durably-core/storage'
import { isOpen } from './debounce-witness'

/** So few that what is long finds no room beside others. */
const MOST_BYTES = 80

/** What lists have come to, as somebody sees it who looks at the runs before and after each of them. */
export interface ArrivedLists {
  /** The run of each trigger that arrived. */
  readonly runIds: Map<string, string>
  /** The run of each key that got entries last. */
  readonly newest: Map<string, string>
  readonly entries: string[]
}

export function noLists(): ArrivedLists {
  return { runIds: new Map(), newest: new Map(), entries: [] }
}

/** In memory a write is over when its call returns. */
export function watchLists(
  storage: MemoryStorage,
  { wrong, lists }: { readonly wrong: string[]; readonly lists: ArrivedLists },
  now: () => number,
): MemoryStorage['debounce']['join'] {
  return async function join(given, transaction) {
    const batched = { ...given, maxBytes: MOST_BYTES }
    const look = () => storage.getRuns({ jobNames: [given.run.jobName] })
    const nowMs = now()
    const looking = look()
    const answer = await storage.debounce.join(batched, transaction)
    const [before, after] = [await looking, await look()]
    wrong.push(...mistakesIn({ batched, before, nowMs, lists }, { after, answer }))
    return answer
  }
}

interface Asked {
  readonly batched: BatchedRun
  readonly before: readonly RunRecord[]
  readonly nowMs: number
  readonly lists: ArrivedLists
}

interface Done {
  readonly after: readonly RunRecord[]
  readonly answer: EnqueueAnswer
}

function* mistakesIn(asked: Asked, { after, answer }: Done) {
  const { batched, before, lists } = asked
  const { id, payload } = batched.run
  const versions = new Map(before.map((run) => [run.id, run.version]))
  const changed = after.filter((run) => versions.get(run.id) !== run.version)
  const arrivedIn = lists.runIds.get(id)
  const expected = arrivedIn === undefined ? [expectedOf(asked)] : []
  const told = arrivedIn ?? expected[0]?.id
  if (answer.run.id !== told || answer.created !== (told === id)) {
    yield `the sender of ${payload} heard of run ${answer.run.id}${answer.created ? ', its own' : ''}`
  }
  if (inWords(changed) !== inWords(expected)) {
    yield `${payload} came to ${inWords(changed)} instead of ${inWords(expected)}`
  }
  for (const run of expected) note(lists, batched, run.id)
}

type Expected = Pick<RunRecord, 'id' | 'payload' | 'availableAt'>

/** The run that a list comes to which arrives for the first time. */
function expectedOf({ batched: { run, key, max, maxBytes }, before, nowMs, lists }: Asked): Expected {
  const last = before.find(({ id }) => id === lists.newest.get(key))
  const entries = last !== undefined && isOpen(last) ? [...listOf(last), ...listOf(run)] : []
  const payload = JSON.stringify(entries)
  const hasRoom = entries.length <= max && payload.length <= maxBytes
  if (last === undefined || entries.length === 0 || !hasRoom) {
    const waitMs = listOf(run).length === max ? 0 : WITHIN_MS
    return { id: run.id, payload: run.payload, availableAt: toInstant(nowMs + waitMs) }
  }
  const dueAt = Date.parse(last.availableAt ?? '')
  return { id: last.id, payload, availableAt: toInstant(entries.length === max ? Math.min(nowMs, dueAt) : dueAt) }
}

/** From its first entries on a list that is not full waits so long. */
export const WITHIN_MS = 12_000

function note({ runIds, newest, entries }: ArrivedLists, { run, key }: BatchedRun, runId: string): void {
  runIds.set(run.id, runId)
  newest.set(key, runId)
  entries.push(...listOf(run))
}

function listOf({ payload }: Pick<NewRun, 'payload'>): readonly string[] {
  return JSON.parse(payload ?? '[]') as readonly string[]
}

function inWords(runs: readonly Expected[]): string {
  return (
    runs.map(({ id, payload, availableAt }) => `run ${id} with ${payload} due at ${availableAt}`).join(', ') || 'no run'
  )
}

function toInstant(ms: number): string {
  return new Date(ms).toISOString()
}

/** Each entry that arrived was begun with once, and so was each whose sender heard that it did. */
export function judgeLists({ entries }: ArrivedLists, heard: ReadonlySet<string>, begun: readonly string[]) {
  const got = begun.flatMap((payload) => listOf({ payload }))
  const lost = [...heard].filter((entry) => !got.includes(entry)).map((entry) => `entry ${entry} is lost`)
  const wanted = [...entries].sort().join()
  return [...got].sort().join() === wanted ? lost : [...lost, `lists began with ${got.join()} instead of ${wanted}`]
}
