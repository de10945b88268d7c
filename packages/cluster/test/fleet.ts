import {
  createDurably,
  defineJob,
  type Durably,
  type DurablyOptions,
  type JobOptions,
  type Storage,
} from '@coji/durably-core'
import { createMemoryStorage, type MemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock, type FakeClock } from '@coji/durably-core/testing'
import { type Cluster, type ClusterOptions, createCluster } from '../src/index'
import { schemaOf, START } from './stage'

/** Processes on one storage, with a clock that stands still until a test moves it. */
export interface Fleet {
  readonly clock: FakeClock
  readonly storage: MemoryStorage
  join(workerId: string, options?: MemberOptions): Member
}

export interface Member {
  readonly durably: Durably
  readonly cluster: Cluster
  /** Runs that it executes and that wait for `end`, by their payload. */
  readonly inHand: Map<unknown, (value: unknown) => void>
  /** Payloads in the order in which it began them. */
  readonly begun: unknown[]
  readonly told: { readonly type: string; readonly runId: string }[]
  readonly errors: string[]
}

export interface MemberOptions extends ClusterOptions {
  readonly concurrency?: number
  readonly durably?: Partial<DurablyOptions>
  readonly job?: Partial<JobOptions<'placed', unknown, unknown>>
  readonly storage?: Storage
  /** A second job with a placement. */
  readonly hasOther?: boolean
}

export function fleet(): Fleet {
  const clock = createFakeClock(START)
  const storage = createMemoryStorage({ now: () => clock.now() })
  return { clock, storage, join: (workerId, options = {}) => join({ clock, storage }, workerId, options) }
}

function join({ clock, storage }: Pick<Fleet, 'clock' | 'storage'>, workerId: string, options: MemberOptions): Member {
  const { concurrency = 2, durably: over = {}, job, storage: own = storage, hasOther, ...clusterOptions } = options
  const environment = { clock, random: () => 0.5 }
  const durably = createDurably({ storage: own, logger: null, workerId, concurrency, environment, ...over })
  const inHand: Member['inHand'] = new Map()
  const begun: unknown[] = []
  const body = (payload: unknown) => {
    begun.push(payload)
    return new Promise((resolve) => void inHand.set(payload, resolve))
  }
  const input = schemaOf<unknown>()
  durably.register({
    placed: defineJob({ name: 'placed', input, placement: 'leader', ...job }, (_ctx, payload) => body(payload)),
    plain: defineJob({ name: 'plain', input }, (_ctx, payload) => body(payload)),
  })
  if (hasOther) {
    durably.register({
      other: defineJob({ name: 'other', input, placement: 'leader' }, (_ctx, payload) => body(payload)),
    })
  }
  const told: Member['told'] = []
  for (const type of ['run:assign', 'run:orphan', 'run:start', 'run:complete'] as const) {
    durably.on(type, ({ runId }) => void told.push({ type, runId }))
  }
  const errors: string[] = []
  durably.onError((error) => void errors.push(error instanceof Error ? error.message : String(error)))
  const cluster = createCluster(durably, clusterOptions)
  return { durably, cluster, inHand, begun, told, errors }
}

/** Lets all of them end what they have in hand, until there is nothing more. */
export async function endAll(clock: FakeClock, members: readonly Member[]): Promise<void> {
  for (let rounds = 0; rounds < 100; rounds++) {
    const open = members.filter(({ inHand }) => inHand.size > 0)
    for (const { inHand } of open) {
      for (const [payload, end] of inHand) {
        inHand.delete(payload)
        end(null)
      }
    }
    await clock.advance(1000)
    if (open.length === 0 && members.every(({ inHand }) => inHand.size === 0)) return
  }
}
