import type { TriggerOptions } from '@coji/durably-core'
import type { RunDraft, RunDrafts } from '@coji/durably-core/extend'
import type { WishDefinition } from './subscriptions'

export interface WantedRun {
  readonly jobName: string
  /** As JSON. */
  readonly payload: string | null
  /** What the job has told of itself; `undefined`: it has told nothing. */
  readonly wish: Pick<WishDefinition, 'jobVersion' | 'timeoutMs'> | undefined
  readonly options: Pick<TriggerOptions, 'tenant' | 'idempotencyKey'>
}

/** The run that a job wants of a message, or of several. Of a job that this process does not know its wish says the rest. */
export function draftWanted(drafts: RunDrafts, { jobName, payload, wish, options }: WantedRun): RunDraft {
  if (drafts.jobs().some(({ name }) => name === jobName)) {
    return drafts.draft(jobName, payload === null ? undefined : JSON.parse(payload), options)
  }
  const draft = drafts.draftEncoded(jobName, payload, options)
  return wish === undefined ? draft : { ...draft, jobVersion: wish.jobVersion, timeoutMs: wish.timeoutMs }
}
