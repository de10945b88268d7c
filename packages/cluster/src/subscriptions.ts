import type { Durably, JobDefinition, MessageWish } from '@coji/durably-core'
import type { Gathering } from '@coji/durably-core/extend'
import type { InboxStorage, NewRun, Subscription } from '@coji/durably-core/storage'

/** What the storage keeps of a wish, for processes that do not know the job. */
export interface WishDefinition extends Pick<NewRun, 'jobVersion' | 'timeoutMs'> {
  readonly where: MessageWish['where'] | null
  readonly gathering: Gathering | null
}

/** Tells all processes what the jobs of this one want, and anew when it has more of them: none ever leaves. */
export function subscribing({ drafts }: Durably, inbox: InboxStorage<never>) {
  let told = 0
  return {
    async prepare(): Promise<void> {
      const jobs = drafts.jobs()
      const names = jobs.map(({ name }) => name)
      await inbox.subscribe(names, jobs.flatMap(subscriptionsOf))
      told = jobs.length
    },
    isStale: () => drafts.jobs().length !== told,
  }
}

function subscriptionsOf({ name: jobName, version, timeoutMs, on, gathering }: JobDefinition): readonly Subscription[] {
  return on.map(({ type, where = null }) => {
    const definition: WishDefinition = { where, gathering, jobVersion: version, timeoutMs }
    return { jobName, type, definition: JSON.stringify(definition) }
  })
}
