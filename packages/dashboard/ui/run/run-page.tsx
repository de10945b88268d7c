import type { Run } from '@coji/durably-core'
import { type UsedRun, useRun, useRunLogs } from '@coji/durably-react'
import { useEffect } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { shortId } from '../format'
import { CopyButton } from '../parts/copy-button'
import { EmptyState } from '../parts/empty-state'
import { JsonView } from '../parts/json-view'
import { StatusChip } from '../parts/status-chip'
import { Trouble } from '../parts/trouble'
import { hasEnded, shareOf } from '../run-status'
import { ChildrenView } from './children-view'
import { EventsView } from './events-view'
import { LogsView } from './logs-view'
import { RunActions } from './run-actions'
import { RunFacts } from './run-facts'
import { RunWhy } from './run-why'
import { ErrorText } from './step-detail'
import { TimelineView } from './timeline-view'

export function RunPage({ id }: { readonly id: string }) {
  const [, navigate] = useLocation()
  const used = useRun(id)
  const { run, isMissing, trouble } = used
  useEffect(() => {
    document.title = run === null ? 'Run · durably' : `${run.jobName} ${shortId(run.id)} · durably`
  }, [run])
  if (isMissing) {
    return (
      <EmptyState
        title="There is no such run"
        text={`${id} was deleted or purged, or never was, or is not yours to see.`}
        action={{ label: 'Show all runs', onPress: () => navigate('/') }}
      />
    )
  }
  if (run === null) {
    return (
      <>
        <Trouble error={trouble} />
        <p className="is-late muted">Reading the run …</p>
      </>
    )
  }
  return <KnownRun run={run} used={used} />
}

interface KnownRunProps {
  readonly run: Run
  readonly used: UsedRun
}

function KnownRun({ run, used }: KnownRunProps) {
  return (
    <article className="run-page">
      <RunHeader run={run} used={used} />
      <Trouble error={used.trouble} />
      {!hasEnded(run) && <RunWhy run={run} />}
      {run.error !== null && (
        <section className="card is-bad" aria-label="Error">
          <h2>{hasEnded(run) ? 'Error' : 'The attempt before failed'}</h2>
          <ErrorPlace run={run} />
          <ErrorText message={run.error} stack={run.errorDetail?.stack} />
        </section>
      )}
      <div className="run-columns">
        <RunTabs run={run} used={used} />
        <aside className="run-side" aria-label="Facts">
          <RunFacts run={run} />
          <ChildrenView run={run} />
        </aside>
      </div>
    </article>
  )
}

/** Where the error came from, and what else failed like that. */
function ErrorPlace({ run: { errorDetail } }: { readonly run: Run }) {
  const { stepName, code } = errorDetail ?? {}
  if (stepName === undefined && code === undefined) return null
  return (
    <p className="small muted">
      {stepName !== undefined && `in step “${stepName}” `}
      {code !== undefined && (
        <>
          code <Link href={`/?${new URLSearchParams({ error: code })}`}>{code}</Link>
        </>
      )}
    </p>
  )
}

function RunHeader({ run, used }: KnownRunProps) {
  const share = shareOf(run)
  const { progress, isLive } = used
  return (
    <header className="run-header">
      <p className="small">
        <Link href="/">Runs</Link> <span className="muted">/</span>{' '}
        <Link href={`/?${new URLSearchParams({ job: run.jobName })}`}>{run.jobName}</Link>
      </p>
      <div className="run-title">
        <h1>{run.jobName}</h1>
        <StatusChip run={run} />
        {isLive && <span className="live small">live</span>}
        <span className="run-id">
          <code>{run.id}</code>
          <CopyButton text={run.id} what="Run id" />
        </span>
        <RunActions run={run} steps={used.steps} />
      </div>
      {!hasEnded(run) && progress !== null && (
        <p className="run-progress">
          <progress value={share ?? undefined} aria-label="Progress" />
          <span>
            {progress.current}
            {progress.total !== undefined && ` of ${progress.total}`}
            {progress.message !== undefined && <span className="muted"> · {progress.message}</span>}
          </span>
        </p>
      )}
    </header>
  )
}

const TABS = ['timeline', 'data', 'logs', 'events', 'raw'] as const
type Tab = (typeof TABS)[number]
const TAB_LABELS: Readonly<Record<Tab, string>> = {
  timeline: 'Timeline',
  data: 'Input and output',
  logs: 'Logs',
  events: 'Events',
  raw: 'Raw',
}

function RunTabs({ run, used }: KnownRunProps) {
  const search = useSearch()
  const asked = new URLSearchParams(search).get('tab')
  const tab = TABS.find((each) => each === asked) ?? 'timeline'
  const logs = useRunLogs(run.id)
  return (
    <div className="run-main">
      <nav className="tabs" aria-label="Views of the run">
        {TABS.map((each) => (
          <Link
            key={each}
            href={`/runs/${run.id}${each === 'timeline' ? '' : `?tab=${each}`}`}
            aria-current={each === tab ? 'page' : undefined}
            replace
            ref={each === tab ? scrollIntoSight : null}
          >
            {TAB_LABELS[each]}
            {each === 'logs' && logs.logs.length > 0 && <span className="count">{logs.logs.length}</span>}
          </Link>
        ))}
      </nav>
      <div className="card">
        {tab === 'timeline' && <TimelineView run={run} steps={used.steps} logs={logs.logs} />}
        {tab === 'timeline' && used.text !== '' && <StreamText text={used.text} />}
        {tab === 'data' && <RunData run={run} />}
        {tab === 'logs' && <LogsView logs={logs} />}
        {tab === 'events' && <EventsView id={run.id} />}
        {tab === 'raw' && <JsonView value={{ run, steps: used.steps }} label="Raw run" />}
      </div>
    </div>
  )
}

/** On a phone there is not room for all of them. */
function scrollIntoSight(tab: HTMLElement | null): void {
  tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
}

function RunData({ run }: { readonly run: Run }) {
  return (
    <>
      <h2>Input</h2>
      <JsonView value={run.payload} label="Input" />
      <h2>Output</h2>
      {run.status === 'completed' ? (
        <JsonView value={run.output} label="Output" />
      ) : (
        <p className="muted">{hasEnded(run) ? 'There is none.' : 'It is there when the run has completed.'}</p>
      )}
    </>
  )
}

function StreamText({ text }: { readonly text: string }) {
  return (
    <section className="stream-text" aria-label="Streamed text">
      <h2>Streamed text</h2>
      <p>{text}</p>
    </section>
  )
}
