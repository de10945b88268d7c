import type { Run } from '@coji/durably-core'
import { VirtualRows } from '../parts/virtual-rows'
import { useNarrow } from '../use-narrow'
import { RunRow } from './run-row'
import { useListKeys } from './use-list-keys'
import type { Selection } from './use-selection'

interface RunTableProps {
  readonly runs: readonly Run[]
  readonly hasMore: boolean
  readonly selection: Selection
  readonly canSelect: boolean
  readonly onShowMore: () => void
}

const COLUMNS = ['Status', 'Job', 'Note', 'Duration', 'Created'] as const

/** A list to those who hear it, since each row has its own words; to the eye it has columns. */
export function RunTable({ runs, hasMore, selection, canSelect, onShowMore }: RunTableProps) {
  const isNarrow = useNarrow()
  const ref = useListKeys()
  const ids = runs.map(({ id }) => id)
  return (
    <div ref={ref} className="run-table">
      <div className="run-row is-head">
        {canSelect ? (
          <label className="cell-select">
            <input
              type="checkbox"
              checked={ids.length > 0 && ids.every(selection.has)}
              onChange={() => selection.toggleAll(ids)}
              aria-label="Select all runs that are shown"
            />
            <span className="cell-select-all">Select all</span>
          </label>
        ) : (
          <span className="cell-select" />
        )}
        {COLUMNS.map((title) => (
          <span key={title} className={`cell-${title.toLowerCase()}`} aria-hidden="true">
            {title}
          </span>
        ))}
      </div>
      <VirtualRows
        label="Runs"
        count={runs.length}
        rowHeight={isNarrow ? 84 : 45}
        keyOf={(index) => runs[index]?.id ?? String(index)}
        onEnd={hasMore ? onShowMore : undefined}
        render={(index) => {
          const run = runs[index]
          if (run === undefined) return null
          const isSelected = selection.has(run.id)
          return <RunRow run={run} isSelected={isSelected} canSelect={canSelect} onToggle={selection.toggle} />
        }}
      />
    </div>
  )
}
