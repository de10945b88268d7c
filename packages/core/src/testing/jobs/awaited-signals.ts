import type { Durably } from '../../instance'
import { isEnded } from '../../base'
import type { Storage } from '../../port'
import { NeverWaitsError } from './errors'

interface AwaitedSignal {
  readonly runId: string
  readonly name: string
  readonly payload: unknown
  readonly sent: () => void
  readonly refuse: (error: unknown) => void
}

/** Signals that are sent as soon as a run waits for them. */
export class AwaitedSignals {
  readonly #storage: Storage
  readonly #current: () => Durably
  #awaited: readonly AwaitedSignal[] = []
  /** Rows of waits that have their signal. */
  readonly #answered = new Set<string>()
  #looking: Promise<void> = Promise.resolve()
  #settled = 0

  constructor(storage: Storage, current: () => Durably) {
    this.#storage = storage
    this.#current = current
  }

  /** Settles when it was sent. */
  add(signal: Pick<AwaitedSignal, 'runId' | 'name' | 'payload'>): Promise<void> {
    const { promise, resolve, reject } = deferred()
    this.#awaited = [...this.#awaited, { ...signal, sent: resolve, refuse: reject }]
    void this.look()
    return promise
  }

  /** One look at a time, so that no wait gets two. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#lookAtAll())
    return this.#looking
  }

  /** Whether any was sent, or refused, since the last call. */
  async wereSettled(): Promise<boolean> {
    await this.look()
    const settled = this.#settled
    this.#settled = 0
    return settled > 0
  }

  async #lookAtAll(): Promise<void> {
    for (const signal of this.#awaited) {
      try {
        if (await this.#send(signal)) this.#remove(signal).sent()
      } catch (error) {
        this.#remove(signal).refuse(error)
      }
    }
  }

  async #send({ runId, name, payload }: AwaitedSignal): Promise<boolean> {
    const steps = await this.#storage.getSteps(runId)
    const wait = steps.find(
      (step) =>
        step.status === 'waiting' && step.kind === 'signal' && step.waitName === name && !this.#answered.has(step.id),
    )
    if (wait === undefined) {
      const run = await this.#storage.getRun(runId)
      if (run !== null && !isEnded(run.status)) return false
      throw new NeverWaitsError(runId, run?.status ?? 'gone', name)
    }
    this.#answered.add(wait.id)
    await this.#current().signal(runId, name, payload)
    return true
  }

  #remove(signal: AwaitedSignal): AwaitedSignal {
    this.#settled += 1
    this.#awaited = this.#awaited.filter((each) => each !== signal)
    return signal
  }
}

function deferred() {
  let resolve = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // Whoever asks may await it late.
  promise.catch(() => {})
  return { promise, resolve, reject }
}
