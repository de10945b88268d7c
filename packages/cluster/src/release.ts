import type { Durably } from '@coji/durably-core'
import { MAX_VALUE_BYTES, type RunDrafts } from '@coji/durably-core/extend'
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
    const parts = groups.flatMap(partsOf)
    const plans = parts.map((group) => planRelease(durably.drafts, group, wishes.get(group.jobName)))
    const answers = await inbox.release(
      lead,
      plans.map(({ group: { members }, run }) => ({ members: members.map(({ id }) => id), run })),
    )
    for (const [index, plan] of plans.entries()) announce(durably, plan, answers[index] as DeliveryAnswer)
    if (answers.every((answer) => !answer.kept)) return { nextInMs: 0, isLost: true }
    await durably.drafts.breathe()
  }
}

const ENCODER = new TextEncoder()

/** Lists that a run has room for: each message was small enough for one, all of them together may not be. */
function partsOf(group: RipeGroup): readonly RipeGroup[] {
  if (group.mode === 'last') return [group]
  const parts: RipeGroup['members'][number][][] = []
  let bytes = MAX_VALUE_BYTES
  for (const member of group.members) {
    // With a comma, or a bracket.
    const own = ENCODER.encode(textOf(member)).length + 1
    if (bytes + own >= MAX_VALUE_BYTES) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(member)
    bytes += own
  }
  return parts.map((members) => ({ ...group, members }))
}

function textOf({ payload }: RipeGroup['members'][number]): string {
  return payload ?? 'null'
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
  return `[${members.map(textOf).join()}]`
}

function announce(durably: Durably, { group, run, error }: ReleasePlan, answer: DeliveryAnswer): void {
  if (!answer.kept) return
  const { jobName, tenant, members } = group
  const messageIds = members.map(({ id }) => id.slice(0, id.indexOf(' ')))
  if (error !== null) durably.emit({ type: 'inbox:refused', messageIds, tenant, jobName, error })
  if (run !== null && answer.created.length > 0) durably.drafts.announce([run])
}
