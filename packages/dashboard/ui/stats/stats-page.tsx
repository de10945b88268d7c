import type { Statistics } from '@coji/durably-core'
import { useRead } from '@coji/durably-react'
import { useEffect } from 'react'
import { useLocation, useSearch } from 'wouter'
import { useViewer } from '../api'
import { EmptyState } from '../parts/empty-state'
import { Trouble } from '../parts/trouble'
import { useNow } from '../use-now'
import { Charts } from './charts'
import { DAY, partsOf, type Range, RANGES } from './ranges'
import { fillParts } from './series'
import { Totals } from './totals'

const MINUTE_MS = 60_000

export function StatsPage() {
  const { api } = useViewer()
  const [, navigate] = useLocation()
  const asked = new URLSearchParams(useSearch())
  const range = RANGES.find(({ key }) => key === asked.get('range')) ?? DAY
  const jobName = asked.get('job') ?? ''
  const parts = partsOf(range, useNow(true, MINUTE_MS))
  const from = new Date(parts[0] ?? 0)
  const filter = { from, interval: range.interval, ...(jobName !== '' && { jobName }) }
  const { value, trouble } = useRead(`statistics ${JSON.stringify(filter)}`, () => api.getStatistics(filter))
  const jobs = useRead('jobs', () => api.jobs())
  useEffect(() => {
    document.title = 'Statistics · durably'
  }, [])
  const change = (part: { readonly range?: Range; readonly job?: string }) => {
    const search = new URLSearchParams({ range: (part.range ?? range).key, job: part.job ?? jobName })
    if (search.get('job') === '') search.delete('job')
    navigate(`/stats?${search}`)
  }
  if (Object(trouble).code === 'CAPABILITY_MISSING') return <NobodyCounts text="This storage cannot count." />
  if (value?.countedUntil === null) return <NobodyCounts />
  return (
    <>
      <div className="stats-bar">
        <h1>Statistics</h1>
        <fieldset className="views">
          <legend className="visually-hidden">How far back</legend>
          {RANGES.map((each) => (
            <button key={each.key} type="button" aria-pressed={each === range} onClick={() => change({ range: each })}>
              {each.label}
            </button>
          ))}
        </fieldset>
        <JobSelect
          jobName={jobName}
          names={(jobs.value ?? []).map(({ name }) => name)}
          onChange={(job) => change({ job })}
        />
      </div>
      <Trouble error={trouble} />
      {value === null ? (
        <p className="is-late muted">Reading …</p>
      ) : (
        <Counted {...{ range, parts }} statistics={value} />
      )}
    </>
  )
}

interface CountedProps {
  readonly range: Range
  readonly parts: readonly number[]
  readonly statistics: Statistics
}

function Counted({ range, parts, statistics }: CountedProps) {
  return (
    <>
      <Totals statistics={statistics} />
      <Charts range={range} parts={fillParts(parts, statistics)} />
    </>
  )
}

interface JobSelectProps {
  readonly jobName: string
  readonly names: readonly string[]
  readonly onChange: (jobName: string) => void
}

function JobSelect({ jobName, names, onChange }: JobSelectProps) {
  const all = names.includes(jobName) || jobName === '' ? names : [jobName, ...names]
  return (
    <select aria-label="Job" value={jobName} onChange={({ target }) => onChange(target.value)}>
      <option value="">All jobs</option>
      {all.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}

function NobodyCounts({ text = 'Nobody has counted any runs yet.' }: { readonly text?: string }) {
  return (
    <EmptyState
      title="There are no statistics"
      text={
        <>
          {text} The plugin <code>withStatistics()</code> of <code>@coji/durably/plugins</code> counts by the hour:{' '}
          <code>durably.use(withStatistics())</code>. The first numbers are there half a minute after a run has ended.
        </>
      }
    />
  )
}
