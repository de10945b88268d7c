import type { ClusterStorage, EndingEvents } from '@coji/durably-core/storage'
import type { Executor } from '../connection'
import type { Transaction } from 'kysely'
import { createDeliver } from './deliver'
import { createFire } from './fire'
import { createGathered } from './gathered'
import { createInbox } from './inbox'
import { createLeads } from './leads'
import { createPlacement } from './placement'
import { createSchedules } from './schedules'
import type { SqlContext, StatementTarget } from '../statement'

export interface ClusterParts {
  readonly context: SqlContext
  readonly executor: Executor
  /** Has something written in a transaction of the caller's. */
  readonly within: <T>(transaction: object, work: (target: StatementTarget) => Promise<T>) => Promise<T>
  readonly passed: <T>(write: () => Promise<T>) => Promise<T>
  /** Tells that these runs are there and due. */
  noteDue(runIds: readonly string[]): void
  /** Tells that somebody wants a running one to end. */
  noteCancel(runId: string): void
}

export function createCluster<DB>(parts: ClusterParts): ClusterStorage<Transaction<DB>> {
  const { context, executor, passed, noteDue, noteCancel } = parts
  const { callers, removers } = executor
  const leads = createLeads(context)
  const schedules = createSchedules(context)
  const fire = createFire(context)
  return {
    inbox: inboxStorage(parts),
    placement: createPlacement(parts),
    lead: (params) => passed(() => leads.take(executor, params)),
    resign: (lead) => leads.resign(executor, lead),
    getLead: (name) => leads.get(callers, name),
    schedules: {
      create: async (list, audit) => (list.length === 0 ? [] : passed(() => schedules.create(callers, list, audit))),
      change: (change) => passed(() => schedules.change(callers, change)),
      remove: (key, audit) => passed(() => schedules.remove(callers, key, audit)),
      purge: (lead, params) => passed(() => schedules.purge(removers, lead, params)),
      async startByHand(start) {
        const created = await passed(() => schedules.startByHand(callers, start))
        noteDue(created)
        return created
      },
      get: (key) => schedules.get(callers, key),
      list: (query) => schedules.list(callers, query),
      due: (limit) => schedules.due(executor, limit),
      async fire(lead, firings, events = NO_EVENTS) {
        if (firings.length === 0) return []
        const answers = await passed(() => fire(executor, { lead, firings, events }))
        const ended = answers.flatMap((answer) => answer.ended)
        for (const { id, status } of ended) if (status === 'running') noteCancel(id)
        noteDue([...answers.flatMap(({ created }) => created), ...ended.map(({ id }) => id)])
        return answers
      },
    },
  }
}

const NO_EVENTS: EndingEvents = { cancelled: [], requested: [] }

function inboxStorage({ context, executor, within, passed, noteDue }: ClusterParts): ClusterStorage<never>['inbox'] {
  const { callers, removers } = executor
  const inbox = createInbox(context)
  const deliver = createDeliver(context)
  const gathered = createGathered(context)
  return {
    async publish(messages, transaction) {
      if (messages.length === 0) return []
      if (transaction !== undefined) return within(transaction, (target) => inbox.publish(target, messages))
      return passed(() => inbox.publish(callers, messages))
    },
    async subscribe(jobNames, subscriptions) {
      await passed(() => inbox.subscribe(callers, jobNames, subscriptions))
    },
    forget: (jobName, audit) => passed(() => inbox.forget(callers, jobName, audit)),
    waiting: (limit) => inbox.waiting(executor, limit),
    async deliver(lead, deliveries) {
      if (deliveries.length === 0) return []
      const answers = await passed(() => deliver(executor, lead, deliveries))
      noteDue(answers.flatMap(({ created }) => created))
      return answers
    },
    ripe: (limit) => gathered.ripe(executor, limit),
    async release(lead, releases) {
      if (releases.length === 0) return []
      const answers = await passed(() => gathered.release(executor, lead, releases))
      noteDue(answers.flatMap(({ created }) => created))
      return answers
    },
    list: (query) => inbox.list(callers, query),
    counts: (scope) => inbox.counts(callers, scope),
    replay: (batch) => passed(() => inbox.replay(callers, batch)),
    purge: (lead, params) => passed(() => inbox.purge(removers, lead, params)),
  }
}
