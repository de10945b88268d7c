import { InvalidOptionError, type Plugin } from '@coji/durably-core'
import { type OptionNames, refuseUnknownOptions, requireDuration } from '@coji/durably-core/extend'
import { groupOf } from './tab-group'
import { TabLeadership } from './tab-leadership'
import { relayEvents } from './tab-relay'
import { onReturn } from './tab-visibility'

/** How the tabs of one origin share the work. */
export interface TabLeaderOptions {
  /**
   * Names the group of tabs where the storage does not say where its data is. Tabs on one file are one group under any
   * name. Default `default`.
   */
  readonly name?: string | undefined
  /**
   * Which version of the application this tab has loaded: of several tabs the newest leads. Numbers are compared as
   * numbers, also in text (`2.10.0` is newer than `2.9.1`); a tab without one is older than one with.
   */
  readonly version?: string | number | undefined
  /** Milliseconds of silence after which a visible tab takes the place of a leader that is frozen. Default 120000. */
  readonly staleThreshold?: number | undefined
  /** Milliseconds between two beats of the leader. Default 5000. */
  readonly heartbeatInterval?: number | undefined
  /** Called when this tab becomes the leader and when it no longer is. */
  readonly onLeadership?: ((isLeader: boolean) => void) | undefined
}

/**
 * In one tab at a time `start()` runs the worker; the others trigger and watch, and hear the events of all tabs. When the
 * leader closes or is frozen, the next tab goes on at once; when it only falls silent, a visible one after
 * `staleThreshold`.
 */
export function withTabLeader(options: TabLeaderOptions = {}): Plugin {
  const { name, version, staleThreshold, heartbeatInterval, onLeadership } = checked(options)
  return {
    name: 'tab-leader',
    staleThreshold,
    install(durably) {
      const ends = [onReturn(() => durably.wake())]
      const group = groupOf(durably.storage, name)
      if (typeof BroadcastChannel !== 'undefined') ends.push(relayEvents(durably, `durably:${group}`))
      return () => {
        for (const end of ends) end()
      }
    },
    leadWorker(worker, durably) {
      // Where tabs cannot come to terms (no https: then nothing can be stored either) each works for itself.
      if (!hasLocks()) {
        durably.reportError(new InvalidOptionError(NO_LOCKS), 'tab leader')
        worker.start()
        onLeadership?.(true)
        return () => {}
      }
      const leadership = new TabLeadership({
        worker,
        durably,
        group: groupOf(durably.storage, name),
        version,
        beatMs: heartbeatInterval,
        silenceMs: staleThreshold,
        onLeadership,
      })
      return () => leadership.end()
    },
  }
}

const OPTIONS: OptionNames<TabLeaderOptions> = {
  name: true,
  version: true,
  staleThreshold: true,
  heartbeatInterval: true,
  onLeadership: true,
}

function checked(options: TabLeaderOptions) {
  refuseUnknownOptions('withTabLeader()', options, OPTIONS)
  const { name = 'default', version, staleThreshold = 120_000, heartbeatInterval = 5000, onLeadership } = options
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('withTabLeader() needs a name of its tabs.')
  requireDuration('staleThreshold', staleThreshold)
  requireDuration('heartbeatInterval', heartbeatInterval)
  if (staleThreshold < 2 * heartbeatInterval) {
    throw new InvalidOptionError(
      'staleThreshold must be at least twice heartbeatInterval, or healthy leaders would fall.',
    )
  }
  if (onLeadership !== undefined && typeof onLeadership !== 'function') {
    throw new InvalidOptionError('onLeadership is not a function.')
  }
  if (!isVersion(version)) {
    throw new InvalidOptionError(`version must be a number or a text such as '2.10.0', not ${String(version)}.`)
  }
  return { name, version, staleThreshold, heartbeatInterval, onLeadership }
}

function isVersion(version: unknown): boolean {
  if (version === undefined) return true
  return typeof version === 'number' ? Number.isFinite(version) : typeof version === 'string' && version !== ''
}

const NO_LOCKS =
  'withTabLeader() needs Web Locks and BroadcastChannel, and one of them is missing here: this tab runs its jobs whatever ' +
  'the others do. Browsers have both on https and localhost.'

function hasLocks(): boolean {
  return typeof navigator !== 'undefined' && navigator.locks !== undefined && typeof BroadcastChannel !== 'undefined'
}
