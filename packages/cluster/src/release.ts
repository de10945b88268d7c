import type { Durably } from '@coji/durably-core'
import type { RunDrafts } from '@coji/durably-core/extend'
import type { ClusterStorage, DeliveryAnswer, Lead, NewRun, RipeGroup, Subscription } from '@coji/durably-core/storage'
import type { WishDefinition } from './subscriptions'
import { draftWanted } from './wanted-run'

interface ReleaseParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage<never>
}

/** What one look at the gathered messages led to. */
export interface ReleaseResult {
  /** Until the next group is ripe; `null` without one. */
  readonly nextInMs: number | null
  /** Somebody else has released them. */
  readonly isLost: boolean
}

/** Groups that are released together. */
const AT_ONCE = 200

/** Makes runs of the messages that have waited long enough, as long as there are such. */
export async function releaseGathered(
  { durably, cluster: { inbox } }: ReleaseParams,
  lead: Lead,
): Promise<ReleaseResult> {
  for (;;) {
    const { groups, subscriptions, nextInMs } = await inbox.ripe(AT_ONCE)
    if (groups.length === 0) return { nextInMs, isLost: false }
    const wishes = wishesIn(subscriptions)
    const plans = groups.map((group) => planRelease(durably.drafts, group, wishes.get(group.jobName)))
    const answers = await inbox.release(
      lead,
      plans.map(({ group: { members }, run }) => ({ members: members.map(({ id }) => id), run })),
    )
    for (const [index, plan] of plans.entries()) announce(durably, plan, answers[index] as DeliveryAnswer)
    if (answers.every((answer) => !answer.kept)) return { nextInMs: 0, isLost: true }
    await durably.drafts.breathe()
  }
}

interface ReleasePlan {
  readonly group: RipeGroup
  /** `null`: the schema of the job refuses the payload. */
  readonly run: NewRun | null
  readonly error: string | null
}

/** By job: of one that wants several types each wish says the same of its runs. */
function wishesIn(subscriptions: readonly Subscription[]): ReadonlyMap<string, WishDefinition> {
  return new Map(subscriptions.map(({ jobName, definition }) => [jobName, JSON.parse(definition) as WishDefinition]))
}

function planRelease(drafts: RunDrafts, group: RipeGroup, wish: WishDefinition | undefined): ReleasePlan {
  const { jobName, tenant, members } = group
  const payload = payloadOf(group)
  // A group is one run of its job, whoever makes it.
  const options = { tenant, idempotencyKey: `gathered ${members[0]?.id}` }
  try {
    return { group, run: drafts.run(draftWanted(drafts, { jobName, payload, wish, options })), error: null }
  } catch (error) {
    return { group, run: null, error: error instanceof Error ? error.message : String(error) }
  }
}

function payloadOf({ mode, members }: RipeGroup): string | null {
  if (mode === 'last') return members.at(-1)?.payload ?? null
  return `[${members.map(({ payload }) => payload ?? 'null').join()}]`
}

function announce(durably: Durably, { group, run, error }: ReleasePlan, answer: DeliveryAnswer): void {
  if (!answer.kept) return
  const { jobName, tenant, members } = group
  const messageIds = members.map(({ id }) => id.slice(0, id.indexOf(' ')))
  if (error !== null) durably.emit({ type: 'inbox:refused', messageIds, tenant, jobName, error })
  if (run !== null && answer.created.length > 0) durably.drafts.announce([run])
}
