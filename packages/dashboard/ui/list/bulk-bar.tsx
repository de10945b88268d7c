import type { Run } from '@coji/durably-core'
import { useRunStore } from '@coji/durably-react'
import type { BulkFilter } from '@coji/durably-server/client'
import { useState } from 'react'
import { useMay, useViewer } from '../api'
import { plural } from '../format'
import { Dialog } from '../parts/dialog'
import { useNotices } from '../parts/notices'
import { CAN } from '../run-status'
import { BULK_ACTIONS, type BulkAction } from './bulk-actions'
import { BulkOverFilter } from './bulk-over-filter'
import type { Selection } from './use-selection'

/** At once: enough to be quick, and few enough to leave the server to others. */
const AT_ONCE = 4

interface BulkBarProps {
  readonly runs: readonly Run[]
  /** The filter finds more than these. */
  readonly hasMore: boolean
  readonly filter: BulkFilter
  readonly selection: Selection
}

/** What can be done to the runs that were chosen: each action takes those that it can be done to. */
export function BulkBar({ runs, hasMore, filter, selection }: BulkBarProps) {
  const [asking, setAsking] = useState<BulkAction | null>(null)
  const [isForAll, setIsForAll] = useState(false)
  const { me } = useViewer()
  const chosen = runs.filter(({ id }) => selection.has(id))
  const may = { retry: useMay('retry'), cancel: useMay('cancel'), delete: useMay('delete') }
  if (chosen.length === 0) return null
  const all = isForAll && chosen.length === runs.length
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields
    <div className="bulk-bar" role="group" aria-label="Chosen runs">
      <span>{all ? 'All that the filter finds are chosen' : `${plural(chosen.length, 'run')} chosen`}</span>
      {me.bulk && hasMore && !all && chosen.length === runs.length && (
        <button type="button" className="quiet" onClick={() => setIsForAll(true)}>
          Choose all that the filter finds
        </button>
      )}
      {BULK_ACTIONS.filter(({ key }) => may[key]).map((action) => {
        const count = chosen.filter(CAN[action.key]).length
        return (
          <button key={action.key} type="button" disabled={!all && count === 0} onClick={() => setAsking(action)}>
            {all ? `${action.label} all` : `${action.label} ${count}`}
          </button>
        )
      })}
      <button
        type="button"
        className="quiet"
        onClick={() => {
          setIsForAll(false)
          selection.clear()
        }}
      >
        Clear
      </button>
      {asking !== null && all && <BulkOverFilter action={asking} filter={filter} onClose={() => setAsking(null)} />}
      {asking !== null && !all && (
        <BulkDialog
          action={asking}
          runs={chosen.filter(CAN[asking.key])}
          onClose={() => setAsking(null)}
          onDone={selection.clear}
        />
      )}
    </div>
  )
}

interface BulkDialogProps {
  readonly action: BulkAction
  readonly runs: readonly Run[]
  readonly onClose: () => void
  readonly onDone: () => void
}

function BulkDialog({ action, runs, onClose, onDone }: BulkDialogProps) {
  const store = useRunStore()
  const { tell } = useNotices()
  // What changes meanwhile is not drawn in.
  const [taken] = useState(runs)
  const [done, setDone] = useState<number | null>(null)
  const perform = async () => {
    const failures = await forEachRun(taken, { apply: (id) => action.apply(store, id), onProgress: setDone })
    const count = taken.length - failures.length
    if (count > 0) tell(`${plural(count, 'run')} ${action.done}.`)
    if (failures[0] !== undefined)
      tell(`${plural(failures.length, 'run')} not ${action.done}: ${failures[0].message}`, 'bad')
    onDone()
    onClose()
  }
  return (
    <Dialog
      title={`${action.label} ${plural(taken.length, 'run')}?`}
      confirm={{
        label: action.label,
        isDangerous: action.isDangerous,
        isBusy: done !== null,
      }}
      onConfirm={() => void perform()}
      onClose={onClose}
    >
      <p>{action.words}</p>
      {done !== null && <progress value={done} max={taken.length} aria-label="Progress" />}
    </Dialog>
  )
}

interface ForEachParams {
  readonly apply: (id: string) => Promise<void>
  readonly onProgress: (done: number) => void
}

/** A few at a time; answers what went wrong. */
async function forEachRun(runs: readonly Run[], { apply, onProgress }: ForEachParams): Promise<readonly Error[]> {
  const failures: Error[] = []
  const waiting = runs.values()
  let done = 0
  onProgress(done)
  const work = async () => {
    for (const { id } of waiting) {
      await apply(id).catch((error: Error) => failures.push(error))
      done += 1
      onProgress(done)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return failures
}
