import { StorageError } from '../base'
import type { Instance } from '../instance'
import type { NewRun, RunRecord } from '../port'
import type { QueueSwitch } from './queue-switch'
import type { EnqueuedTask } from './task-queue'

/** What tasks that were enqueued at once are stored with: large lists keep others waiting, and are no cheaper. */
const LONGEST_LIST = 500
const LARGEST_LIST = 4 * 1024 * 1024

const SOON = Promise.resolve()

interface Waiting {
  readonly run: NewRun
  readonly stored: (task: EnqueuedTask) => void
  readonly refused: (error: unknown) => void
}

interface EnqueueingParams {
  readonly instance: Pick<Instance, 'enqueue'>
  readonly queueSwitch: QueueSwitch
  readonly toEnqueued: (record: RunRecord, created: boolean) => EnqueuedTask
}

/** Stores tasks that are enqueued one by one: those of one moment, and what gathers while a list is on its way, together. */
export class Enqueueing {
  readonly #params: EnqueueingParams
  #gathered: Waiting[] = []
  #isWriting = false

  constructor(params: EnqueueingParams) {
    this.#params = params
  }

  add(run: NewRun): Promise<EnqueuedTask> {
    return new Promise((stored, refused) => {
      this.#gathered.push({ run, stored, refused })
      if (this.#isWriting) return
      this.#isWriting = true
      void SOON.then(() => (this.#params.queueSwitch.isPrepared ? this.#write() : this.#prepare()))
    })
  }

  async #prepare(): Promise<void> {
    try {
      await this.#params.queueSwitch.prepared()
      // It may have been stopped meanwhile.
      this.#params.queueSwitch.requireOpen()
    } catch (error) {
      for (const { refused } of this.#gathered.splice(0)) refused(error)
    }
    this.#write()
  }

  #write(): void {
    const list = this.#take()
    if (list.length === 0) this.#isWriting = false
    else this.#store(list, () => this.#write())
  }

  #take(): readonly Waiting[] {
    const gathered = this.#gathered
    let [count, size] = [0, 0]
    while (count < gathered.length && count < LONGEST_LIST) {
      size += gathered[count]?.run.payload?.length ?? 0
      if (count > 0 && size > LARGEST_LIST) break
      count += 1
    }
    if (count < gathered.length) return gathered.splice(0, count)
    this.#gathered = []
    return gathered
  }

  #store(list: readonly Waiting[], next: () => void): void {
    this.#params.instance.enqueue(list.map(({ run }) => run)).then(
      (answers) => {
        for (const [index, { run, created }] of answers.entries())
          list[index]?.stored(this.#params.toEnqueued(run, created))
        next()
      },
      (error: unknown) => {
        // One that the storage will never take is not the fault of the others, and nothing of the list was written.
        const isOfOne = error instanceof StorageError && error.code === 'STORAGE_REJECTED' && list.length > 1
        if (isOfOne) this.#storeEach(list, next)
        else {
          for (const { refused } of list) refused(error)
          next()
        }
      },
    )
  }

  #storeEach([first, ...others]: readonly Waiting[], next: () => void): void {
    if (first === undefined) next()
    else this.#store([first], () => this.#storeEach(others, next))
  }
}
