export {
  createDurably,
  createInstance,
  type Durably,
  type Handles,
  type Instance,
  type JobRecord,
  type RecoverOptions,
  type RunTriggers,
  type ScopedDurably,
} from './durably'
export type { Health } from './health'
export type { Plugin, Uninstall, WorkerSwitch } from './plugin'
