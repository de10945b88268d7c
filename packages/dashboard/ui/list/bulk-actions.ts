import type { RunStore } from '@coji/durably-react'

/** What can be done to many runs. */
export interface BulkAction {
  readonly key: 'cancel' | 'retry' | 'delete'
  readonly label: string
  readonly done: string
  readonly isDangerous: boolean
  readonly words: string
  readonly apply: (store: RunStore, id: string) => Promise<void>
}

export const BULK_ACTIONS: readonly BulkAction[] = [
  {
    key: 'retry',
    label: 'Retry',
    done: 'retried',
    isDangerous: false,
    words: 'They go on after their last completed step.',
    apply: (store, id) => store.retry(id),
  },
  {
    key: 'cancel',
    label: 'Cancel',
    done: 'cancelled',
    isDangerous: true,
    words: 'Those that are running end as soon as their worker hears of it.',
    apply: (store, id) => store.cancel(id),
  },
  {
    key: 'delete',
    label: 'Delete',
    done: 'deleted',
    isDangerous: true,
    words: 'They are gone with their steps, events and logs.',
    apply: (store, id) => store.deleteRun(id),
  },
]
