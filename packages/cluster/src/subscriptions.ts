import type { JobDefinition, MessageWish } from '@coji/durably-core'
import type { Gathering } from '@coji/durably-core/extend'
import type { InboxStorage, NewRun, Subscription } from '@coji/durably-core/storage'

/** What the storage keeps of a wish, for processes that do not know the job. */
export interface WishDefinition extends Pick<NewRun, 'jobVersion' | 'timeoutMs'> {
  readonly where: MessageWish['where'] | null
  readonly gathering: Gathering | null
}

/** Tells all processes what the jobs of this one want. */
export function subscribeJobs(inbox: InboxStorage<never>, jobs: readonly JobDefinition[]): Promise<void> {
  return inbox.subscribe(
    jobs.map(({ name }) => name),
    jobs.flatMap(subscriptionsOf),
  )
}

function subscriptionsOf({ name: jobName, version, timeoutMs, on, gathering }: JobDefinition): readonly Subscription[] {
  return on.map(({ type, where = null }) => {
    const definition: WishDefinition = { where, gathering, jobVersion: version, timeoutMs }
    return { jobName, type, definition: JSON.stringify(definition) }
  })
}
