import type { MemoryStorage } from '@coji/durably-core/memory'
import type { BatchedRun, DebouncedRun, DeliveryAnswer, EnqueueAnswer, Lead, NewRun } from '@coji/durably-core/storage'

export type Mutant = (storage: MemoryStorage) => MemoryStorage

type Cluster = MemoryStorage['cluster']
type Schedules = Cluster['schedules']
type Inbox = Cluster['inbox']

/** A storage of schedules, messages and triggers that does not ask for one thing, by the name of what it leaves out. */
export const MUTANTS: Readonly<Record<string, Mutant>> = {
  'the lead of another is over': (storage) => {
    const { cluster } = storage
    return withCluster(storage, {
      async lead(params) {
        const lead = await cluster.lead(params)
        const held = lead === null ? await cluster.getLead(params.name) : null
        if (held === null) return lead
        await cluster.resign(held)
        return cluster.lead(params)
      },
    })
  },
  'whoever fires leads': (storage) =>
    withSchedules(storage, ({ fire }) => ({
      fire: async (lead, firings, events) => fire(await newest(storage, lead), firings, events),
    })),
  'a firing knows the schedule as it is': (storage) =>
    withSchedules(storage, ({ fire, list }) => ({
      async fire(lead, firings, events) {
        const versions = new Map((await list({})).map(({ id, version }) => [id, version]))
        return await fire(
          lead,
          firings.map((firing) => ({ ...firing, version: versions.get(firing.scheduleId) ?? firing.version })),
          events,
        )
      },
    })),
  'an instant has one run': (storage) => {
    const blind = (run: NewRun): NewRun => ({ ...run, scheduledFor: null })
    const seeing = withSchedules(storage, ({ fire }) => ({
      fire: (lead, firings, events) =>
        fire(
          lead,
          firings.map((firing) => ({ ...firing, runs: firing.runs.map(blind) })),
          events,
        ),
    }))
    return { ...seeing, enqueue: (runs) => storage.enqueue(runs.map(blind)) }
  },
  'what makes way ends with the firing': (storage) =>
    withSchedules(storage, ({ fire }) => ({
      async fire(lead, firings, events) {
        const answers = await fire(
          lead,
          firings.map((firing) => ({ ...firing, ends: [] })),
        )
        const kept = firings.filter((_firing, index) => answers[index]?.kept === true)
        for (const runId of kept.flatMap(({ ends }) => ends)) {
          await storage.command({ kind: 'cancel', runId, events: events ?? { cancelled: [], requested: [] } })
        }
        return answers
      },
    })),
  'whoever delivers leads': (storage) =>
    withInbox(storage, ({ deliver }) => ({
      deliver: async (lead, deliveries) => deliver(await newest(storage, lead), deliveries),
    })),
  'a message was not delivered yet': (storage) =>
    withInbox(storage, ({ deliver }) => ({
      async deliver(lead, deliveries) {
        const answers = await deliver(lead, deliveries)
        return anyway(storage, lead, { answers, runs: deliveries.map(({ runs }) => runs) })
      },
    })),
  'whoever releases leads': (storage) =>
    withInbox(storage, ({ release }) => ({
      release: async (lead, releases) => release(await newest(storage, lead), releases),
    })),
  'what was gathered is there': (storage) =>
    withInbox(storage, ({ release }) => ({
      async release(lead, releases) {
        const answers = await release(lead, releases)
        return anyway(storage, lead, { answers, runs: releases.map(({ run }) => (run === null ? [] : [run])) })
      },
    })),
  'a message that is sent again is there': (storage) => {
    let sent = 0
    return withInbox(storage, ({ publish }) => ({
      publish: (messages) => publish(messages.map((message) => ({ ...message, id: `${message.id}-${++sent}` }))),
    }))
  },
  'the dedupe key is taken': (storage) =>
    withInbox(storage, ({ publish }) => ({
      publish: (messages) => publish(messages.map((message) => ({ ...message, dedupeKey: null }))),
    })),
  'a run of the key waits': (storage) =>
    withDebounce(storage, async ({ run }) => {
      const [answer] = await storage.enqueue([run])
      return answer as NonNullable<typeof answer>
    }),
  'the run of the key has not begun': (storage) => {
    const newestOf = new Map<string, string>()
    return withDebounce(storage, async (debounced) => {
      const newestRun = await storage.getRun(newestOf.get(debounced.key) ?? '')
      if (newestRun !== null && newestRun.startedAt !== null) return { run: newestRun, created: false }
      const answer = await storage.debounce.enqueue(debounced)
      newestOf.set(debounced.key, answer.run.id)
      return answer
    })
  },
  'a trigger that is sent again has its run': (storage) =>
    withDebounce(storage, async (debounced) => {
      const { run } = debounced
      const hasBegun = ((await storage.getRun(run.id))?.startedAt ?? null) !== null
      return storage.debounce.enqueue(hasBegun ? { ...debounced, run: { ...run, id: `${run.id}-2` } } : debounced)
    }),
  'the longest wait is over': (storage) =>
    withDebounce(storage, (debounced) => storage.debounce.enqueue({ ...debounced, maxWaitMs: null })),
  'a list of the key waits': (storage) =>
    withLists(storage, async ({ run }) => {
      const [answer] = await storage.enqueue([run])
      return answer as NonNullable<typeof answer>
    }),
  'the list of the key has not begun': (storage) => {
    const newestOf = new Map<string, string>()
    return withLists(storage, async (batched) => {
      const newestRun = await storage.getRun(newestOf.get(batched.key) ?? '')
      if (newestRun !== null && newestRun.startedAt !== null) return { run: newestRun, created: false }
      const answer = await storage.debounce.join(batched)
      newestOf.set(batched.key, answer.run.id)
      return answer
    })
  },
  'a list has room for so many entries': (storage) =>
    withLists(storage, (batched) => storage.debounce.join({ ...batched, max: batched.max + 1 })),
  'a list has room for so many bytes': (storage) =>
    withLists(storage, (batched) => storage.debounce.join({ ...batched, maxBytes: Number.MAX_SAFE_INTEGER })),
  'a list that is sent again has its run': (storage) => sentAnew(storage, ({ created }) => created),
  'a list that is sent again has come to a run': (storage) => sentAnew(storage, ({ created }) => !created),
}

/** As if it were another one, if its answer was such. */
function sentAnew(storage: MemoryStorage, isForgotten: (answer: EnqueueAnswer) => boolean): MemoryStorage {
  const forgotten = new Set<string>()
  return withLists(storage, async (batched) => {
    const { run } = batched
    const id = forgotten.has(run.id) ? `${run.id}-2` : run.id
    const answer = await storage.debounce.join({ ...batched, run: { ...run, id } })
    if (isForgotten(answer)) forgotten.add(run.id)
    return answer
  })
}

function withCluster(storage: MemoryStorage, over: Partial<Cluster>): MemoryStorage {
  return { ...storage, cluster: { ...storage.cluster, ...over } }
}

function withSchedules(storage: MemoryStorage, change: (schedules: Schedules) => Partial<Schedules>): MemoryStorage {
  const { schedules } = storage.cluster
  return withCluster(storage, { schedules: { ...schedules, ...change(schedules) } })
}

function withInbox(storage: MemoryStorage, change: (inbox: Inbox) => Partial<Inbox>): MemoryStorage {
  const { inbox } = storage.cluster
  return withCluster(storage, { inbox: { ...inbox, ...change(inbox) } })
}

function withDebounce(
  storage: MemoryStorage,
  enqueue: (debounced: DebouncedRun) => ReturnType<MemoryStorage['debounce']['enqueue']>,
): MemoryStorage {
  return { ...storage, debounce: { ...storage.debounce, enqueue: (debounced) => enqueue(debounced) } }
}

function withLists(
  storage: MemoryStorage,
  join: (batched: BatchedRun) => ReturnType<MemoryStorage['debounce']['join']>,
): MemoryStorage {
  return { ...storage, debounce: { ...storage.debounce, join: (batched) => join(batched) } }
}

async function newest({ cluster }: MemoryStorage, lead: Lead): Promise<Lead> {
  return (await cluster.getLead(lead.name)) ?? lead
}

interface Refused {
  readonly answers: readonly DeliveryAnswer[]
  readonly runs: readonly (readonly NewRun[])[]
}

/** What was refused to who has the lead is done all the same, without what would stop a second run beside the guard. */
async function anyway(
  storage: MemoryStorage,
  lead: Lead,
  { answers, runs }: Refused,
): Promise<readonly DeliveryAnswer[]> {
  const { workerId, epoch } = await newest(storage, lead)
  if (workerId !== lead.workerId || epoch !== lead.epoch) return answers
  const made: DeliveryAnswer[] = []
  for (const [index, answer] of answers.entries()) {
    const more = answer.kept ? [] : (runs[index] ?? [])
    await storage.enqueue(more.map((run) => ({ ...run, idempotencyKey: null })))
    made.push(answer.kept ? answer : { kept: true, created: more.map(({ id }) => id) })
  }
  return made
}
