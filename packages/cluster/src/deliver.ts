import type { Durably } from '@coji/durably-core'
import type { Gathering, RunDrafts } from '@coji/durably-core/extend'
import type {
  ClusterStorage,
  Delivery,
  DeliveryAnswer,
  Lead,
  MessageRecord,
  NewGathered,
  NewRun,
  Subscription,
} from '@coji/durably-core/storage'
import type { WishDefinition } from './subscriptions'
import { isWanted, valueAt } from './matching'
import { draftWanted } from './wanted-run'

export interface DeliverParams {
  readonly durably: Durably
  readonly cluster: ClusterStorage<never>
}

/** What one look into the inbox led to. */
export interface DeliverResult {
  /** How many messages were delivered. */
  readonly delivered: number
  /** Until the next one may be; `null` without one. */
  readonly nextInMs: number | null
  /** Somebody else has delivered them. */
  readonly isLost: boolean
}

/** Messages that are delivered together. */
const AT_ONCE = 500

/** Delivers what waits, in its order, as long as there is something. */
export async function deliverWaiting(
  { durably, cluster: { inbox } }: DeliverParams,
  lead: Lead,
): Promise<DeliverResult> {
  let delivered = 0
  for (;;) {
    const { messages, subscriptions, nextInMs } = await inbox.waiting(AT_ONCE)
    const plans = messages.map((message) => planDelivery(durably.drafts, message, subscriptions))
    const answers = await inbox.deliver(
      lead,
      plans.map(({ delivery }) => delivery),
    )
    for (const [index, plan] of plans.entries()) announce(durably, plan, answers[index] as DeliveryAnswer)
    const kept = answers.filter((answer) => answer.kept).length
    delivered += kept
    const isLost = plans.length > 0 && kept === 0
    if (isLost || messages.length < AT_ONCE) return { delivered, nextInMs: isLost ? 0 : nextInMs, isLost }
    await durably.drafts.breathe()
  }
}

/** A job whose schema refuses the payload. */
interface Refusal {
  readonly jobName: string
  readonly error: string
}

interface DeliveryPlan {
  readonly message: MessageRecord
  readonly delivery: Delivery
  readonly refusals: readonly Refusal[]
}

function planDelivery(drafts: RunDrafts, message: MessageRecord, subscriptions: readonly Subscription[]): DeliveryPlan {
  const payload: unknown = message.payload === null ? undefined : JSON.parse(message.payload)
  const wishes = subscriptions
    .filter(({ type }) => type === message.type)
    .map(({ jobName, definition }) => ({ jobName, wish: JSON.parse(definition) as WishDefinition }))
    .filter(({ wish }) => isWanted(payload, wish.where ?? undefined))
  const refusals: Refusal[] = []
  const runs: NewRun[] = []
  const gathered: NewGathered[] = []
  for (const { jobName, wish } of wishes) {
    if (wish.gathering !== null) {
      gathered.push(gatheredOf(jobName, wish.gathering, payload))
      continue
    }
    try {
      runs.push(
        drafts.run(draftWanted(drafts, { jobName, payload: message.payload, wish, options: optionsOf(message) })),
      )
    } catch (error) {
      refusals.push({ jobName, error: error instanceof Error ? error.message : String(error) })
    }
  }
  const { id: messageId, round } = message
  return { message, refusals, delivery: { messageId, round, wanted: wishes.length, runs, gathered } }
}

function gatheredOf(jobName: string, { mode, waitMs, max, key }: Gathering, payload: unknown): NewGathered {
  const value = key === null ? undefined : valueAt(payload, key)
  return { jobName, mode, waitMs, max, key: value === undefined ? '' : JSON.stringify(value) }
}

/** The key is for the case that two processes differ in what is delivered: a message is one run of a job. */
function optionsOf({ id, tenant, round }: MessageRecord) {
  return { tenant, idempotencyKey: `message ${id} ${round}` }
}

/** Of a message that somebody else has delivered there is nothing to tell. */
function announce(durably: Durably, { message, delivery, refusals }: DeliveryPlan, answer: DeliveryAnswer): void {
  if (!answer.kept) return
  const own = { messageId: message.id, messageType: message.type, tenant: message.tenant }
  for (const refusal of refusals) {
    durably.emit({ type: 'inbox:refused', messageIds: [message.id], tenant: message.tenant, ...refusal })
  }
  if (delivery.wanted === 0) durably.emit({ type: 'inbox:unwanted', ...own })
  if (delivery.runs.length > 0) durably.emit({ type: 'inbox:delivered', ...own, runs: answer.created.length })
  durably.drafts.announce(delivery.runs.filter(({ id }) => answer.created.includes(id)))
}
