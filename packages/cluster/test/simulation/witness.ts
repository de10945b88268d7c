import type { MemoryStorage } from '@coji/durably-core/memory'
import type { Firing, NewRun, RunRecord, ScheduleRecord } from '@coji/durably-core/storage'
import { type ArrivedLists, noLists } from './batch-witness'
import { watchDebounce } from './debounce-witness'
import { LeadWitness } from './lead-witness'

/** What was written, as the storage itself has seen it: runs may be gone when it is judged. */
export interface Witness {
  readonly wrong: string[]
  /** Of schedules, by the schedule: the instants of all runs that time has created. */
  readonly fired: Map<string, string[]>
  /** The same of runs that were made up for. */
  readonly backfilled: Map<string, string[]>
  /** Payloads of the runs of messages, by the job. */
  readonly payloads: Map<string, string[]>
  /** What was kept for a job until more has come: how often each has led to a run since. */
  readonly gathered: Map<string, number>
  /** The payload of the last trigger of each key that arrived. */
  readonly lastArrived: Map<string, string>
  readonly lists: ArrivedLists
}

interface Watched {
  readonly storage: MemoryStorage
  readonly witness: Witness
}

/** The runs of instants, by schedule and instant: of those that are there none has a second one. */
class Instants {
  readonly #storage: MemoryStorage
  readonly #wrong: string[]
  readonly #runIds = new Map<string, string>()

  constructor(storage: MemoryStorage, wrong: string[]) {
    this.#storage = storage
    this.#wrong = wrong
  }

  async note(into: Map<string, string[]>, { id, scheduleId, scheduledFor }: NewRun): Promise<void> {
    if (scheduleId === null || scheduledFor === null) return
    add(into, scheduleId, scheduledFor)
    const name = `${scheduleId} ${scheduledFor}`
    const before = this.#runIds.get(name)
    this.#runIds.set(name, id)
    if (before !== undefined && before !== id && (await this.#storage.getRun(before)) !== null) {
      this.#wrong.push(`${scheduledFor} has two runs`)
    }
  }
}

/** Notes what becomes of time, messages and triggers. */
export function watched(storage: MemoryStorage, now: () => number): Watched {
  const witness: Witness = {
    ...{ wrong: [], fired: new Map(), backfilled: new Map(), payloads: new Map() },
    ...{ gathered: new Map(), lastArrived: new Map(), lists: noLists() },
  }
  const leads = new LeadWitness(witness.wrong, now)
  const instants = new Instants(storage, witness.wrong)
  const cluster: MemoryStorage['cluster'] = {
    ...storage.cluster,
    ...leads.watch(storage.cluster),
    schedules: watchSchedules(storage, witness, { leads, instants }),
    inbox: watchInbox(storage, witness, leads),
  }
  return {
    witness,
    storage: {
      ...storage,
      cluster,
      debounce: watchDebounce(storage, witness, now),
      async enqueue(runs) {
        const answers = await storage.enqueue(runs)
        for (const [index, run] of runs.entries()) {
          if (answers[index]?.created === true) await instants.note(witness.backfilled, run)
        }
        return answers
      },
    },
  }
}

interface Eyes {
  readonly leads: LeadWitness
  readonly instants: Instants
}

function watchSchedules(storage: MemoryStorage, { wrong, fired }: Witness, { leads, instants }: Eyes) {
  const { schedules } = storage.cluster
  const own: MemoryStorage['cluster']['schedules'] = {
    ...schedules,
    async fire(lead, firings, events) {
      const looking = schedules.list({})
      const seen = leads.seen()
      const firing = schedules.fire(lead, firings, events)
      const after = storage.getRuns({ jobNames: ['tick'] })
      const answers = await firing
      const versions = new Map((await looking).map(({ id, version }) => [id, version]))
      wrong.push(
        ...leftOpen(
          firings.filter((_each, index) => answers[index]?.kept === true),
          await looking,
          await after,
        ),
      )
      for (const [index, { scheduleId, version, runs }] of firings.entries()) {
        const { kept, created } = answers[index] as Answer
        if (kept) seen.mustBeNewest('a firing', lead)
        if (kept && versions.get(scheduleId) !== version) wrong.push(`a firing took version ${version} for the last`)
        for (const run of runs.filter(({ id }) => created.includes(id))) {
          if (fired.get(scheduleId)?.includes(run.scheduledFor ?? '')) wrong.push(`${run.scheduledFor} fired twice`)
          await instants.note(fired, run)
        }
      }
      return answers
    },
  }
  return own
}

/** Nobody executes them, so that those of before have ended with the write that created the new one. */
function leftOpen(kept: readonly Firing[], all: readonly ScheduleRecord[], after: readonly RunRecord[]) {
  return kept.flatMap(({ scheduleId, runs }) => {
    const hasThemEnd = all.some(({ id, overlap }) => id === scheduleId && overlap === 'cancel')
    if (!hasThemEnd || runs.length === 0) return []
    const open = after.filter((run) => run.scheduleId === scheduleId && run.finishedAt === null)
    const left = open.filter(({ id }) => id !== runs.at(-1)?.id)
    return left.map(({ scheduledFor }) => `the run of ${scheduledFor} was left by a firing after it`)
  })
}

function watchInbox({ cluster: { inbox } }: MemoryStorage, { wrong, payloads, gathered }: Witness, leads: LeadWitness) {
  const notePayloads = (runs: readonly NewRun[], { created }: Answer) => {
    for (const { id, jobName, payload } of runs) if (created.includes(id)) add(payloads, jobName, payload ?? '')
  }
  const own: MemoryStorage['cluster']['inbox'] = {
    ...inbox,
    async deliver(lead, deliveries) {
      const looking = inbox.list({})
      const seen = leads.seen()
      const answers = await inbox.deliver(lead, deliveries)
      const before = new Map((await looking).map((message) => [message.id, message]))
      for (const [index, { messageId, round, runs, gathered: parts }] of deliveries.entries()) {
        const answer = answers[index] as Answer
        if (!answer.kept) continue
        seen.mustBeNewest('a delivery', lead)
        const was = before.get(messageId)
        if (was?.processedAt !== null || was.round !== round) wrong.push(`message ${messageId} was delivered before`)
        notePayloads(runs, answer)
        for (const { jobName } of parts) gathered.set(`${messageId} ${round} ${jobName}`, 0)
      }
      return answers
    },
    async release(lead, releases) {
      const seen = leads.seen()
      const answers = await inbox.release(lead, releases)
      for (const [index, { members, run }] of releases.entries()) {
        const answer = answers[index] as Answer
        if (!answer.kept) continue
        seen.mustBeNewest('a release', lead)
        if (run !== null) notePayloads([run], answer)
        for (const id of members) {
          const count = gathered.get(id)
          if (count !== 0) wrong.push(`${id} was released ${count} times before`)
          gathered.set(id, 1)
        }
      }
      return answers
    },
  }
  return own
}

interface Answer {
  readonly kept: boolean
  readonly created: readonly string[]
}

function add(lists: Map<string, string[]>, name: string, value: string): void {
  lists.set(name, [...(lists.get(name) ?? []), value])
}
