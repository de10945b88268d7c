export {
  createDurably,
  createInstance,
  type Durably,
  type Handles,
  type Instance,
  type JobRecord,
  type ScopedDurably,
} from './durably'
export type { Health } from './health'
export type { RecoverOptions } from './recover-options'
export type { Plugin, Uninstall, WorkerSwitch } from './plugin'
export type { RunTriggers } from './run-triggers'
