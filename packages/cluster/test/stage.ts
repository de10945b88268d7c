import { createDurably, defineJob, type Durably, type Storage } from '@coji/durably-core'
import type { LeadParams } from '@coji/durably-core/storage'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { createFakeClock, type FakeClock } from '@coji/durably-core/testing'
import { createScheduler, type Scheduler, type SchedulerOptions } from '../src/index'

/** Any Standard Schema; this one wants an object with a text `for`, where `isStrict`. */
export function schemaOf<T>(isStrict = false) {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) =>
        isStrict && typeof Object(value).for !== 'string'
          ? { issues: [{ message: 'Expected a text', path: ['for'] }] }
          : { value: value as T },
    },
  } as const
}

export const START = Date.UTC(2030, 0, 1)
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export interface Stage {
  readonly clock: FakeClock
  readonly storage: Storage
  readonly durably: Durably
  readonly schedules: Scheduler
  /** Payloads of the runs as they were executed. */
  readonly executed: unknown[]
  /** What the instance told of schedules, in order. */
  readonly told: unknown[]
  readonly errors: string[]
}

export interface StageOptions extends SchedulerOptions {
  readonly clock?: FakeClock
  readonly storage?: Storage
}

/** One process with a clock that stands still until a test moves it. */
export function stage(options: StageOptions = {}): Stage {
  // What looks less often has a long time pass in fewer steps.
  const { clock = createFakeClock(START), storage: given, pollingInterval = 10 * MINUTE, ...others } = options
  const storage = given ?? createMemoryStorage({ now: () => clock.now() })
  const environment = { clock, random: () => 0.5 }
  const durably = createDurably({ storage, logger: null, pollingInterval: HOUR, environment })
  const executed: unknown[] = []
  durably.register({
    report: defineJob({ name: 'report', input: schemaOf<{ for: string }>(true) }, async (_ctx, payload) => {
      executed.push(payload)
    }),
    slow: defineJob({ name: 'slow', input: schemaOf<unknown>() }, async (ctx) => ctx.sleep('nap', 90 * MINUTE)),
  })
  const told: unknown[] = []
  for (const type of ['schedule:fired', 'schedule:missed'] as const) {
    durably.on(type, ({ timestamp: _timestamp, sequence: _sequence, ...event }) => void told.push(event))
  }
  const errors: string[] = []
  durably.onError((error) => void errors.push(error instanceof Error ? error.message : String(error)))
  const schedules = createScheduler(durably, { pollingInterval, ...others })
  return { clock, storage, durably, schedules, executed, told, errors }
}

/** When the runs of a schedule were to be, the earliest first. */
export async function instantsOf({ durably }: Pick<Stage, 'durably'>): Promise<(string | null)[]> {
  return (await durably.getRuns()).map(({ scheduledFor }) => scheduledFor).reverse()
}

/** Long times in hours: each of them somebody looks once. */
export async function pass({ clock, schedules, durably }: Stage, ms: number): Promise<void> {
  for (let passed = 0; passed <= ms; passed += HOUR) {
    await schedules.tick()
    await durably.runUntilIdle()
    if (passed < ms) await clock.stall(HOUR)
  }
}

export function at(ms: number): string {
  return new Date(START + ms).toISOString()
}

/** From here on everybody believes to lead who does so no more, until what is returned is called. */
export function withStaleLeads({ cluster }: Storage): () => void {
  if (cluster === undefined) throw new Error('There is no cluster.')
  const take = cluster.lead
  const lead = async (params: LeadParams) => ({ ...params, epoch: ((await take(params))?.epoch ?? 0) - 1 })
  Object.assign(cluster, { lead })
  return () => void Object.assign(cluster, { lead: take })
}
