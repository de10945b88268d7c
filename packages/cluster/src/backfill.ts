import { InvalidOptionError, type Durably } from '@coji/durably-core'
import type { ScheduleRecord } from '@coji/durably-core/storage'
import { refuseUnknownOptions } from '@coji/durably-core/extend'
import { type ReadSchedule, readSchedule, runAt } from './firing'
import { instantsOf } from './timing'

/** Of which instants runs are to be made up for. */
export interface BackfillOptions {
  /** This one is among them. */
  readonly from: Date | string
  /** This one is not among them. */
  readonly to: Date | string
  /** Whose schedule it is. */
  readonly tenant?: string | undefined
}

const AT_ONCE = 500
const MOST = 10_000

/** Creates the runs that are missing, and answers the ids of all of them, of those too that were there. */
export async function backfill(
  durably: Durably,
  schedule: ScheduleRecord,
  { from, to }: BackfillOptions,
): Promise<readonly string[]> {
  const read = readSchedule(schedule)
  const instants = instantsIn(read, { fromMs: msOf('from', from), toMs: msOf('to', to) })
  const ids: string[] = []
  for (let place = 0; place < instants.length; place += AT_ONCE) {
    const runs = instants.slice(place, place + AT_ONCE).map((instant) => runAt(durably.drafts, read, instant))
    const answers = await durably.storage.enqueue(runs)
    durably.drafts.announce(runs.filter((_run, index) => answers[index]?.created === true))
    ids.push(...answers.map(({ run }) => run.id))
  }
  return ids
}

export function refuseBadBackfill(options: BackfillOptions): void {
  refuseUnknownOptions('backfill()', options, { from: true, to: true, tenant: true })
}

interface Range {
  readonly fromMs: number
  readonly toMs: number
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
  const ms = new Date(instant).getTime()
  if (!Number.isNaN(ms)) return ms
  throw new InvalidOptionError(`${name} of backfill() must be a Date or an ISO 8601 text, not ${String(instant)}.`)
}
