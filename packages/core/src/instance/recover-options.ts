import { InvalidOptionError, type OptionNames, refuseUnknownOptions, requireBoolean } from '../base'

/** Whose runs `recover()` takes back. */
export interface RecoverOptions {
  /** The worker that is gone. */
  readonly workerId: string
  /**
   * `false`: it left on purpose, as a page does that somebody navigates away from. Its runs go on as after a release: no
   * crash is counted and nothing waits. Default true.
   */
  readonly crashed?: boolean | undefined
}

const RECOVER_OPTIONS: OptionNames<RecoverOptions> = { workerId: true, crashed: true }

/** Checked. */
export function deadWorkerIn(options: RecoverOptions) {
  refuseUnknownOptions('recover()', options, RECOVER_OPTIONS)
  const { workerId, crashed = true } = options
  if (typeof workerId !== 'string' || workerId === '') throw new InvalidOptionError('recover() needs a workerId.')
  requireBoolean('crashed', crashed)
  return { workerId, crashed }
}
