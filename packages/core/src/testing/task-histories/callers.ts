import { DurablyError } from '../../base'
import type { EnqueueItem } from '../../queue/index'
import type { Random } from '../simulation/random'
import { must, mustEqual } from '../simulation/violation'
import { isEnded } from './judge-queue'
import type { BookedTask, Ledger } from './ledger'
import type { QueueProcess } from './queue-process'
import type { TaskKind } from './task-kinds'

export interface CallersParams {
  readonly random: Random
  readonly ledger: Ledger
  readonly kinds: readonly TaskKind[]
  readonly say: (what: string) => void
}

interface PlannedTask {
  readonly item: EnqueueItem
  readonly dedupeKey: string | null
  readonly notBefore: number
}

/** People and programs that use a queue; what it answers has to be right. */
export class Callers {
  readonly #params: CallersParams
  #enqueued = 0

  constructor(params: CallersParams) {
    this.#params = params
  }

  async enqueue(process: QueueProcess): Promise<void> {
    const { random, ledger, kinds, say } = this.#params
    const kind = random.pick(kinds as [TaskKind, ...TaskKind[]])
    const planned = Array.from({ length: random.chance(0.25) ? random.between(2, 4) : 1 }, () => this.#plan(process))
    const { type } = kind
    say(`enqueues ${planned.length} ${type} ${JSON.stringify(planned.map(({ item }) => item.options))}`)
    const before = ledger.tasks.size
    // Until a stop is complete, what is in progress may lead to more.
    const wasStopped = process.isStopped
    const answer = await outcomeOf(
      process.queue.enqueueMany(
        type,
        planned.map(({ item }) => item),
      ),
    )
    if (wasStopped) {
      mustEqual(answer, { refused: 'QUEUE_STOPPED' }, 'enqueue() of a queue that was stopped')
      mustEqual(ledger.tasks.size, before, 'tasks after enqueue() was refused')
      return
    }
    must('value' in answer, () => `enqueue() came to ${JSON.stringify(answer)}`)
    if (!('value' in answer)) return
    let created = 0
    answer.value.forEach(({ id, deduplicated }, index) => {
      const { dedupeKey = null, notBefore = 0 } = planned[index] ?? {}
      const first = ledger.withKey(type, dedupeKey)
      mustEqual(deduplicated, first !== undefined, `deduplicated of ${id} with key ${dedupeKey}`)
      if (first !== undefined) {
        mustEqual(id, first, `the task with key ${dedupeKey}`)
        return
      }
      created += 1
      const task = ledger.tasks.get(id)
      must(task !== undefined, () => `${id} was enqueued, and nobody said so`)
      if (task !== undefined) ledger.complete(task, { dedupeKey, notBefore })
    })
    mustEqual(ledger.tasks.size - before, created, 'tasks that were said to be enqueued')
  }

  #plan({ clock }: QueueProcess): PlannedTask {
    const { random } = this.#params
    const inMs = random.chance(0.3) ? random.between(0, random.pick([50, 2000, 10_000])) : null
    const dedupeKey = random.chance(0.2) ? `key-${random.int(3)}` : null
    const at = clock.now() + (inMs ?? 0)
    const start = inMs === null ? {} : random.chance(0.7) ? { delay: inMs } : { runAt: new Date(at) }
    const options = {
      ...start,
      ...(dedupeKey !== null && { dedupeKey }),
      ...(random.chance(0.2) && { priority: random.between(-1, 2) }),
    }
    this.#enqueued += 1
    return { item: { payload: { number: this.#enqueued }, options }, dedupeKey, notBefore: inMs === null ? 0 : at }
  }

  async redrive({ queue }: QueueProcess): Promise<void> {
    const task = this.#pick('dead')
    if (task === undefined) return
    const { id, state } = task
    this.#params.say(`redrives ${id}`)
    const answer = await outcomeOf(queue.redrive(id))
    if (state !== 'dead') {
      mustEqual(answer, { refused: 'CONFLICT' }, `redrive(${id}), which is ${state}`)
      return
    }
    must('value' in answer, () => `redrive(${id}), which was dead, came to ${JSON.stringify(answer)}`)
    if ('value' in answer) mustEqual([answer.value.state, answer.value.attempts], ['queued', 0], `redrive(${id})`)
  }

  async redriveAll({ queue }: QueueProcess): Promise<void> {
    const { random, kinds, ledger, say } = this.#params
    const type = random.chance(0.5) ? random.pickAny(kinds)?.type : undefined
    const dead = ledger.ended('dead').filter(({ kind }) => type === undefined || kind.type === type)
    say(`redrives all ${type ?? ''}`)
    mustEqual(await queue.redrive({ type }), dead.length, `redrive() of all that are dead (${type})`)
  }

  async remove({ queue }: QueueProcess): Promise<void> {
    const { ledger, say } = this.#params
    const task = this.#pick(null)
    if (task === undefined) return
    const { id, state } = task
    say(`removes ${id}, ${state}`)
    const answer = await outcomeOf(queue.remove(id))
    if (state === 'running') {
      mustEqual(answer, { refused: 'CONFLICT' }, `remove(${id}), which is running`)
      return
    }
    must('value' in answer, () => `remove(${id}), which was ${state}, came to ${JSON.stringify(answer)}`)
    ledger.remove(task)
    mustEqual(await queue.status(id), null, `status(${id}), which was removed`)
    mustEqual(await outcomeOf(queue.redrive(id)), { refused: 'NOT_FOUND' }, `redrive(${id}), which was removed`)
  }

  async purge({ queue, clock }: QueueProcess): Promise<void> {
    const { random, kinds, ledger, say } = this.#params
    const state = random.pick(['succeeded', 'dead', undefined] as const)
    const type = random.chance(0.7) ? random.pickAny(kinds)?.type : undefined
    const olderThan = random.chance(0.5) ? random.between(0, 20_000) : undefined
    say(`purges ${JSON.stringify({ state, type, olderThan })}`)
    const wanted = ledger
      .all()
      .filter(
        (task) =>
          isEnded(task.state) &&
          (state === undefined || task.state === state) &&
          (type === undefined || task.kind.type === type) &&
          (olderThan === undefined || clock.now() - task.finishedAt > olderThan),
      )
    mustEqual(await queue.purge({ state, type, olderThan }), wanted.length, `purge(${JSON.stringify({ state, type })})`)
    for (const task of wanted) ledger.remove(task)
  }

  /** Mostly one of that state. */
  #pick(state: BookedTask['state'] | null): BookedTask | undefined {
    const { random, ledger } = this.#params
    const fitting = ledger.all().filter((task) => task.state === state)
    return random.chance(0.7) && fitting.length > 0 ? random.pickAny(fitting) : random.pickAny(ledger.all())
  }
}

type CallOutcome<T> = { readonly value: T } | { readonly refused: string }

async function outcomeOf<T>(call: Promise<T>): Promise<CallOutcome<T>> {
  try {
    return { value: await call }
  } catch (error) {
    return { refused: error instanceof DurablyError ? error.code : String(error) }
  }
}
