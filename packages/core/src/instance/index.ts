export {
  createDurably,
  createInstance,
  type Durably,
  type Handles,
  type Instance,
  type JobRecord,
  type RunTriggers,
  type ScopedDurably,
} from './durably'
export type { Health } from './health'
export type { RecoverOptions } from './recover-options'
export type { Plugin, StartedTerm, Uninstall, WorkerSwitch } from './plugin'
