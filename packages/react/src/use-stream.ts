import { useMemo } from 'react'
import type { Observed } from './observed'
import { useRunStore } from './provider'
import { type StreamView, streamOf } from './run-stream'
import { LOADING, NO_RUN } from './run-view'
import { fixed, useObserved } from './use-observed'

const NO_STREAM = streamOf(NO_RUN, undefined)
const NO_STREAM_YET = streamOf(LOADING, undefined)

/** Which of the streams of a run. */
export interface UseStreamOptions {
  /** The name that the job gave to `ctx.stream`. Default: the stream that began last. */
  readonly step?: string | undefined
}

/** What `ctx.stream` of a run emits, from its beginning, also when the run has ended. Of no run while `id` is `null`. */
export function useStream(id: string | null | undefined, { step }: UseStreamOptions = {}): StreamView {
  const store = useRunStore()
  const observed = useMemo<Observed<StreamView>>(
    () => (id == null ? fixed(NO_STREAM) : store.stream(id, step)),
    [store, id, step],
  )
  return useObserved(observed, id == null ? NO_STREAM : NO_STREAM_YET)
}
