import { type Actor, InvalidOptionError, type Durably } from '@coji/durably-core'
import type { NewRun, ScheduleRecord, ScheduleStorage } from '@coji/durably-core/storage'
import { instantIn, refuseUnknownOptions } from '@coji/durably-core/extend'
import { type ReadSchedule, readSchedule, runAt } from './firing'
import { storageNow } from './storage-now'
import { instantsOf } from './timing'

/** Of which instants runs are to be made up for. */
export interface BackfillOptions {
  /** This one is among them. */
  readonly from: Date | string
  /** This one is not among them. It must not be later than now. */
  readonly to: Date | string
  /** Whose schedule it is. */
  readonly tenant?: string | undefined
  /** Who does it: kept with the ids of the new runs, for `durably.getAudit()`. */
  readonly as?: Actor | undefined
}

interface BackfillParams {
  readonly durably: Durably
  readonly storage: ScheduleStorage
}

const AT_ONCE = 500
const MOST = 10_000

/** Creates the runs that are missing, and answers the ids of all of them, of those too that were there. */
export async function backfill(
  params: BackfillParams,
  schedule: ScheduleRecord,
  { from, to, as }: BackfillOptions,
): Promise<readonly string[]> {
  const { durably } = params
  const read = readSchedule(schedule)
  const range = { fromMs: msOf('from', from), toMs: msOf('to', to) }
  refuseFuture(range, Date.parse(await storageNow(params.storage)))
  const instants = instantsIn(read, range)
  const ids: string[] = []
  for (let place = 0; place < instants.length; place += AT_ONCE) {
    const runs = instants.slice(place, place + AT_ONCE).map((instant) => runAt(durably.drafts, read, instant))
    const started = await startNoted(params, { schedule, runs, as })
    const answers = await durably.storage.enqueue(runs)
    const isNew = (run: NewRun, index: number) => started?.includes(run.id) ?? answers[index]?.created === true
    durably.drafts.announce(runs.filter(isNew))
    ids.push(...answers.map(({ run }) => run.id))
  }
  return ids
}

interface Start {
  readonly schedule: ScheduleRecord
  readonly runs: readonly NewRun[]
  readonly as: Actor | undefined
}

/** Those that are missing, with who wants them; `null` where nobody has said so. */
async function startNoted({ durably, storage }: BackfillParams, { schedule, runs, as }: Start) {
  const { audit } = durably.drafts.noted('schedules.backfill', as)
  return audit === undefined ? null : storage.startByHand({ scheduleId: schedule.id, runs, audit })
}

export function refuseBadBackfill(options: BackfillOptions): void {
  refuseUnknownOptions('backfill()', options, { from: true, to: true, tenant: true, as: true })
}

interface Range {
  readonly fromMs: number
  readonly toMs: number
}

/** These fire by themselves, and would not when their runs were there. */
function refuseFuture({ toMs }: Range, nowMs: number): void {
  if (toMs <= nowMs) return
  throw new InvalidOptionError('backfill() is for past instants: "to" must not be later than now. Nothing was created.')
}

function instantsIn({ schedule, definition }: ReadSchedule, { fromMs, toMs }: Range): readonly string[] {
  const next = instantsOf(definition.timing, definition, schedule.createdAt)
  const instants: string[] = []
  for (let instant = next(fromMs - 1); instant !== null && instant < toMs; instant = next(instant)) {
    if (instants.length === MOST) {
      throw new InvalidOptionError(
        `There are more than ${MOST} instants in this range. Nothing was created. Give a shorter one.`,
      )
    }
    instants.push(new Date(instant).toISOString())
  }
  return instants
}

function msOf(name: string, instant: Date | string): number {
  return Date.parse(instantIn(`${name} of backfill()`, instant))
}
