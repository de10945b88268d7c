'use client'

export { coalesce, type Coalesced } from './store'
export type {
  ListView,
  LiveStep,
  Observed,
  ObservedRunList,
  PageTriggerOptions,
  ReadView,
  RunApi,
  RunEvent,
  RunHint,
  RunListFilter,
  RunListOptions,
  RunListView,
  RunStore,
  RunView,
  StepView,
  StreamedStep,
  StreamView,
} from './store'
export { createRunStore } from './store'
export { DurablyProvider, type DurablyProviderProps, useRunStore } from './provider'
export { useJob, type UsedJob, type UseJobOptions } from './use-job'
export { useRead } from './use-read'
export { type RunActions, useRun, type UsedRun, type UseRunOptions } from './use-run'
export { type RunEvents, type RunLogs, useRunEvents, useRunLogs } from './use-run-history'
export { type UsedRuns, useRuns, type UseRunsOptions } from './use-runs'
export { useStream, type UseStreamOptions } from './use-stream'
