export {
  createDurably,
  createInstance,
  type Durably,
  type Handles,
  type Health,
  type Instance,
  type JobRecord,
  type RecoverOptions,
  type RunTriggers,
  type ScopedDurably,
} from './durably'
export type { Plugin, Uninstall, WorkerSwitch } from './plugin'
