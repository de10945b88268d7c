import type { JobRef, TriggeredRun } from '@coji/durably-core'
import { useCallback, useRef, useState } from 'react'
import { useRunStore } from './provider'
import type { PageTriggerOptions } from './run-api'
import { type UsedRun, useRun } from './use-run'

/** What a job starts with. */
export interface UseJobOptions {
  /** A run that was triggered before, such as the one in the address of the page. */
  readonly runId?: string | null | undefined
}

/** A job, and the run of it that was triggered last. */
export type UsedJob<TInput = unknown, TOutput = unknown> = UsedRun<TOutput> & {
  /** Rejects if it is refused, and leaves the reason in `triggerError`. */
  trigger(payload: TInput, options?: PageTriggerOptions): Promise<TriggeredRun<TOutput>>
  /** Of the run that is shown. */
  readonly runId: string | null
  /** The run is being stored. */
  readonly isTriggering: boolean
  /** Why the last trigger was refused. */
  readonly triggerError: Error | null
  /** Shows no run any more; the run itself goes on. */
  reset(): void
}

interface Triggering {
  readonly runId: string | null
  readonly isTriggering: boolean
  readonly triggerError: Error | null
}

/** Triggers runs of a job and shows the last one, live. The job: its definition, its declaration, its handle, or its name. */
export function useJob<TInput, TOutput>(job: JobRef<TInput, TOutput>, options?: UseJobOptions): UsedJob<TInput, TOutput>
export function useJob<TOutput = unknown>(jobName: string, options?: UseJobOptions): UsedJob<unknown, TOutput>
export function useJob(job: { readonly name: string } | string, { runId = null }: UseJobOptions = {}): UsedJob {
  const store = useRunStore()
  const jobName = typeof job === 'string' ? job : job.name
  const last = useRef(0)
  const [own, setOwn] = useState<Triggering>({ runId: null, isTriggering: false, triggerError: null })
  const shownId = own.runId ?? runId
  const run = useRun(shownId)
  const trigger = useCallback(
    async (payload: unknown, options?: PageTriggerOptions) => {
      last.current += 1
      const number = last.current
      // Of several triggers the last one is shown, whichever is answered first.
      const set = (change: Partial<Triggering>) => {
        if (number === last.current) setOwn((before) => ({ ...before, isTriggering: false, ...change }))
      }
      set({ isTriggering: true, triggerError: null })
      try {
        const triggered = await store.trigger(jobName, payload, options)
        set({ runId: triggered.id })
        return triggered
      } catch (error) {
        set({ triggerError: error instanceof Error ? error : new Error(String(error)) })
        throw error
      }
    },
    [store, jobName],
  )
  const reset = useCallback(() => {
    last.current += 1
    setOwn({ runId: null, isTriggering: false, triggerError: null })
  }, [])
  return { ...run, ...own, runId: shownId, trigger, reset }
}
