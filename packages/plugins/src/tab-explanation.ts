import type { Heard } from './tab-beat'

export interface Situation {
  readonly leads: boolean
  /** While leading: to whom it hands over. */
  readonly heir: { readonly isNewer: boolean } | null
  /** Whether this tab executes the job. */
  readonly knows: boolean
  /** Whether the tab that leads has a newer version than this one. */
  readonly isNewer: boolean
  readonly heard: Heard
  readonly silenceMs: number
}

/** What a due run of the job waits for, in the words of `explain()`; `null` when nothing of tabs is in its way. */
export function explainWait(
  jobName: string,
  { leads, heir, knows, isNewer, heard, silenceMs }: Situation,
): string | null {
  if (leads && heir !== null) {
    return heir.isNewer
      ? 'a tab with a newer version is to lead, as soon as the runs in hand here have ended or were given back.'
      : 'a tab that knows a job this one does not is to lead; this one only finishes the runs in its hands.'
  }
  if (leads && knows) return null
  if (leads)
    return `this tab leads and does not know the job; one that does and is not older is to lead instead. ${OPEN_ONE}`
  const { leading, silentMs } = heard
  if (leading?.lacks.includes(jobName) === true) {
    if (knows && isNewer) return `the tab that leads does not know the job, and it is newer than this one. ${OPEN_ONE}`
    return knows
      ? 'the tab that leads does not know the job, and is to hand over to this one.'
      : `the tab that leads does not know the job, nor does this one; one that does is to lead instead. ${OPEN_ONE}`
  }
  const silence = `${Math.round(silentMs / 1000)} s`
  const patience = `${Math.round(silenceMs / 1000)} s`
  if (leading === null) {
    return `this tab has not heard from one that leads for ${silence}; after ${patience} without news it leads itself.`
  }
  return `another tab leads and takes it when it has a place free. It was heard of ${silence} ago; after ${patience} without news this tab goes on itself.`
}

const OPEN_ONE = 'If there is none, open the version of the application that has it.'
