import { createTabLock, type TabLock } from './tab-lock'

export interface FinishingParams {
  readonly group: string
  readonly workerId: string
  /** The others see it, again after a sleep. */
  readonly onSeen: () => void
}

/** A tab that has handed the lead over goes on with the runs in its hands, and who leads leaves them to it. */
export interface Finishing {
  readonly isOn: boolean
  /** Resolves when the others see it. */
  begin(): Promise<unknown>
  end(): void
  /** The workers that others see at it. */
  workers(): Promise<ReadonlySet<string>>
}

/** A Web Lock for each such tab: one that dies, leaves or is frozen has it no more. */
export function createFinishing({ group, workerId, onSeen }: FinishingParams): Finishing {
  const prefix = `durably:finishing:${group}:`
  let lock: TabLock | null = null
  let seen: Promise<unknown> = Promise.resolve()
  return {
    get isOn() {
      return lock !== null
    },
    begin() {
      if (lock !== null) return seen
      const own = createTabLock(prefix + workerId)
      lock = own
      seen = new Promise<unknown>((resolve, reject) => {
        const onHeld = () => {
          onSeen()
          resolve(undefined)
        }
        own.hold({ steal: false, onHeld }).then(resolve, (error: unknown) => {
          if (lock === own) lock = null
          reject(error)
        })
      })
      return seen
    },
    end() {
      lock?.release()
      lock = null
    },
    async workers() {
      const { held = [] } = await navigator.locks.query()
      const names = held.flatMap(({ name }) => (name?.startsWith(prefix) === true ? name : []))
      return new Set(names.map((name) => name.slice(prefix.length)))
    },
  }
}
