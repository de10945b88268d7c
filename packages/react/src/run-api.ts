import type {
  DurablyEvent,
  EventType,
  Run,
  RunCommands,
  RunFilter,
  RunReads,
  RunSubscriptions,
  TriggeredRun,
  TriggerOptions,
} from '@coji/durably-core'

/** How a run is triggered from a page: whose run it is, and in which transaction, is for the server to say. */
export type PageTriggerOptions = Omit<TriggerOptions, 'tenant' | 'transaction'>

/** Which runs a list shows: all that meet every condition. How many of them is for the list to say. */
export type RunListFilter = Omit<RunFilter, 'limit' | 'cursor'>

/** Something changed. */
export interface RunHint {
  /** The run that changed; `null`: nobody knows which. */
  readonly runId: string | null
  /** People wait for this: the run ended, or is gone. */
  readonly isUrgent: boolean
}

/** What the store needs to know and to do: an instance in this tab has it, and so does a client over HTTP. */
export interface RunApi
  extends Pick<RunReads, 'getRun' | 'getSteps' | 'getLogs' | 'getEvents'>,
    Pick<RunCommands, 'cancel' | 'retry' | 'signal' | 'deleteRun'>,
    RunSubscriptions {
  /** Newest first. */
  getRuns(filter?: RunListFilter & { readonly limit?: number }): Promise<Run[]>
  trigger(jobName: string, payload?: unknown, options?: PageTriggerOptions): Promise<TriggeredRun>
  /** An instance tells what happens in it, and in the other tabs if they share their work. */
  on?<T extends EventType>(type: T, listener: (event: DurablyEvent<T>) => void): () => void
  /** A client tells which runs change, as its server hears of it. */
  watchRuns?(listener: (hint: RunHint) => void): () => void
}
