import type { CountedRuns } from '@coji/durably-server/client'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { ANY_TIME, type ListFilter, SINCES, wantedBy } from './list-filter'
import { countText, VIEWS } from './views'

interface FilterBarProps {
  readonly filter: ListFilter
  readonly counted: CountedRuns | null
  readonly jobNames: readonly string[]
  readonly onChange: (change: Partial<ListFilter>) => void
}

export function FilterBar({ filter, counted, jobNames, onChange }: FilterBarProps) {
  return (
    <div className="filter-bar">
      <nav className="views" aria-label="Views">
        {VIEWS.map((view) => (
          <button key={view.key} type="button" aria-pressed={filter.view === view} onClick={() => onChange({ view })}>
            {view.label}
            {counted !== null && view.count !== undefined && (
              <span className="count">{countText(view.count(counted.counts), counted.upTo)}</span>
            )}
          </button>
        ))}
      </nav>
      <select
        aria-label="Created"
        value={filter.since.key}
        onChange={({ target }) => onChange({ since: SINCES.find(({ key }) => key === target.value) ?? ANY_TIME })}
      >
        {SINCES.map(({ key, label }) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
      <Search filter={filter} jobNames={jobNames} onChange={onChange} />
    </div>
  )
}

type SearchProps = Omit<FilterBarProps, 'counted'>

function Search({ filter, jobNames, onChange }: SearchProps) {
  const [text, setText] = useState('')
  const [, navigate] = useLocation()
  const input = useRef<HTMLInputElement>(null)
  useSlash(() => input.current?.focus())
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const wanted = wantedBy(text)
    if (wanted === null) return
    setText('')
    if (wanted.kind === 'run') navigate(`/runs/${wanted.id}`)
    if (wanted.kind === 'idPrefix') onChange({ idPrefix: wanted.idPrefix })
    if (wanted.kind === 'job') onChange({ jobs: [...new Set([...filter.jobs, wanted.job])] })
    if (wanted.kind === 'label') onChange({ labels: { ...filter.labels, [wanted.name]: wanted.value } })
  }
  return (
    <search>
      <form className="search" onSubmit={submit}>
        <input
          ref={input}
          type="search"
          value={text}
          onChange={(event) => setText(event.target.value)}
          list="job-names"
          placeholder="Job, label=value or run id"
          aria-label="Find runs by job, label=value or run id"
          aria-keyshortcuts="/"
        />
        <datalist id="job-names">
          {jobNames.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <button type="submit">Find</button>
      </form>
    </search>
  )
}

/** As on many pages, `/` goes to the search. */
function useSlash(focus: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.closest('input, textarea, dialog') !== null
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      focus()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
}

/** What else the list is narrowed by, each with a way out. */
export function FilterChips({ filter, onChange }: Pick<FilterBarProps, 'filter' | 'onChange'>) {
  const { jobs, labels, idPrefix, errorCode } = filter
  const isEmpty = jobs.length === 0 && Object.keys(labels).length === 0
  if (isEmpty && idPrefix === null && errorCode === null) return null
  const without = (name: string) => Object.fromEntries(Object.entries(labels).filter(([each]) => each !== name))
  return (
    <ul className="filter-chips" aria-label="Filters">
      {jobs.map((job) => (
        <FilterChip
          key={`job ${job}`}
          text={job}
          onRemove={() => onChange({ jobs: jobs.filter((each) => each !== job) })}
        />
      ))}
      {Object.entries(labels).map(([name, value]) => (
        <FilterChip
          key={`label ${name}`}
          text={`${name}=${value}`}
          onRemove={() => onChange({ labels: without(name) })}
        />
      ))}
      {idPrefix !== null && <FilterChip text={`id ${idPrefix}…`} onRemove={() => onChange({ idPrefix: null })} />}
      {errorCode !== null && <FilterChip text={`error ${errorCode}`} onRemove={() => onChange({ errorCode: null })} />}
    </ul>
  )
}

function FilterChip({ text, onRemove }: { readonly text: string; readonly onRemove: () => void }) {
  return (
    <li className="filter-chip">
      {text}
      <button type="button" className="quiet" aria-label={`Remove the filter ${text}`} onClick={onRemove}>
        ×
      </button>
    </li>
  )
}
