import { useRead, useRuns } from '@coji/durably-react'
import { useEffect, useMemo } from 'react'
import { useLocation, useSearch } from 'wouter'
import { useMay, useViewer } from '../api'
import { EmptyState } from '../parts/empty-state'
import { Trouble } from '../parts/trouble'
import { Activity } from './activity'
import { useNow } from '../use-now'
import { BulkBar } from './bulk-bar'
import { FilterBar, FilterChips } from './filter-bar'
import { filterOf, isFiltered, type ListFilter, searchOf, toRunFilter } from './list-filter'
import { RunTable } from './run-table'
import { useSelection } from './use-selection'
import { ALL, COUNTED_UP_TO } from './views'

const PAGE_SIZE = 100

export function ListPage() {
  const { api } = useViewer()
  const [, navigate] = useLocation()
  const search = useSearch()
  const filter = useMemo(() => filterOf(search), [search])
  const now = useNow(filter.since.ms !== null, 60_000)
  const runFilter = toRunFilter(filter, now)
  const { runs, hasMore, isLoading, trouble, showMore } = useRuns(runFilter, { pageSize: PAGE_SIZE })
  const toCount = { upTo: COUNTED_UP_TO, ...(filter.jobs.length > 0 && { jobName: filter.jobs }) }
  const counted = useRead(`counts ${JSON.stringify(toCount)}`, () => api.countRuns(toCount))
  const selection = useSelection()
  const canSelect = [useMay('cancel'), useMay('retry'), useMay('delete')].includes(true)
  const jobNames = useMemo(() => [...new Set(runs.map(({ jobName }) => jobName))].sort(), [runs])
  useEffect(() => {
    document.title = `${filter.view === ALL ? 'Runs' : `${filter.view.label} runs`} · durably`
  }, [filter])
  const change = (part: Partial<ListFilter>) => {
    selection.clear()
    navigate(`/${searchOf({ ...filter, ...part })}`)
  }
  return (
    <>
      <h1 className="visually-hidden">Runs</h1>
      <FilterBar filter={filter} counted={counted.value} jobNames={jobNames} onChange={change} />
      <FilterChips filter={filter} onChange={change} />
      <Trouble error={trouble} />
      {runs.length > 0 && <Activity runs={runs} />}
      <BulkBar runs={runs} hasMore={hasMore} filter={runFilter} selection={selection} />
      {runs.length > 0 ? (
        <RunTable runs={runs} hasMore={hasMore} selection={selection} canSelect={canSelect} onShowMore={showMore} />
      ) : (
        <NoRuns isLoading={isLoading} isFiltered={isFiltered(filter)} onShowAll={() => navigate('/')} />
      )}
      {hasMore && (
        <button type="button" className="show-more" onClick={showMore}>
          Show more
        </button>
      )}
    </>
  )
}

interface NoRunsProps {
  readonly isLoading: boolean
  readonly isFiltered: boolean
  readonly onShowAll: () => void
}

function NoRuns({ isLoading, isFiltered: isNarrowed, onShowAll }: NoRunsProps) {
  if (isLoading) return <p className="is-late muted">Reading the runs …</p>
  if (isNarrowed) {
    return (
      <EmptyState
        title="No run is like that"
        text="None of the runs meets all of these conditions."
        action={{ label: 'Show all runs', onPress: onShowAll }}
      />
    )
  }
  return (
    <EmptyState title="There are no runs yet" text="As soon as a job is triggered its run shows up here, by itself." />
  )
}
