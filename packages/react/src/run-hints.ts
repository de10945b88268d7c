import type { RunApi, RunHint } from './run-api'

/** Nobody should see a run at work that has ended. */
const URGENT = ['run:complete', 'run:fail', 'run:timeout', 'run:cancel', 'run:delete'] as const

const CHANGES = [
  ...(['run:trigger', 'run:start', 'run:retry', 'run:suspend', 'run:signal', 'run:park', 'run:unpark'] as const),
  ...(['run:release', 'run:recover', 'run:progress', 'worker:lease-lost'] as const),
] as const

/** For what nobody tells: of a run that another process changes an instance hears nothing. */
const LOOK_EVERY_MS = 10_000
/** Where nobody tells anything. */
const POLL_EVERY_MS = 2000

type HintListener = (hint: RunHint) => void

const ANYTHING: RunHint = { runId: null, isUrgent: false }

/**
 * Who wants to know that runs change. There is one source for all of them, and only while somebody wants to hear of it: over
 * HTTP it is a connection, of which a browser has six for all of its tabs.
 */
export class RunHints {
  readonly #api: RunApi
  readonly #listeners = new Set<HintListener>()
  #wanted = 0
  #stop: (() => void) | null = null

  constructor(api: RunApi) {
    this.#api = api
  }

  /** Hears what this page does itself, and what the source says as long as somebody wants it. */
  listen(listener: HintListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Keeps the source open. */
  want(): () => void {
    this.#wanted += 1
    this.#stop ??= this.#start()
    let isWanted = true
    return () => {
      if (!isWanted) return
      isWanted = false
      this.#wanted -= 1
      if (this.#wanted > 0) return
      this.#stop?.()
      this.#stop = null
    }
  }

  /** Tells everybody here of what this page itself has done. */
  readonly tell = (hint: RunHint): void => {
    for (const listener of [...this.#listeners]) listener(hint)
  }

  #start(): () => void {
    const look = () => {
      if (!isHidden()) this.tell(ANYTHING)
    }
    const told = toldBy(this.#api, this.tell)
    const timer = setInterval(look, told === null ? POLL_EVERY_MS : LOOK_EVERY_MS)
    const stopWatching = watchReturns(look)
    return () => {
      told?.()
      clearInterval(timer)
      stopWatching()
    }
  }
}

function toldBy(api: RunApi, tell: HintListener): (() => void) | null {
  if (api.watchRuns !== undefined) return api.watchRuns(tell)
  if (api.on === undefined) return null
  const { on } = api
  const offs = [
    ...URGENT.map((type) => on(type, ({ runId }) => tell({ runId, isUrgent: true }))),
    ...CHANGES.map((type) => on(type, ({ runId }) => tell({ runId, isUrgent: false }))),
  ]
  return () => {
    for (const off of offs) off()
  }
}

function isHidden(): boolean {
  return typeof document !== 'undefined' && document.visibilityState === 'hidden'
}

/** A page that is seen again, or has its network back, has missed something. */
function watchReturns(look: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  document.addEventListener('visibilitychange', look)
  addEventListener('online', look)
  return () => {
    document.removeEventListener('visibilitychange', look)
    removeEventListener('online', look)
  }
}
