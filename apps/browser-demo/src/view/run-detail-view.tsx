import type { ReactNode } from 'react'
import type { Run } from '@coji/durably'
import type { DemoActions } from '../demo-actions'
import type { OpenStep, RunDetail } from '../demo-state'
import { formatDuration, formatMoment, formatPercent } from '../format'
import { shareOf } from '../run-status'
import { RunActions } from './run-actions'
import { RunHistory } from './run-history'
import { RunResult } from './run-result'
import { StatusChip } from './status-chip'
import { StepsView } from './steps-view'

interface RunDetailViewProps {
  readonly detail: RunDetail
  readonly openSteps: readonly OpenStep[]
  readonly actions: DemoActions
}

export function RunDetailView({ detail, openSteps, actions }: RunDetailViewProps) {
  const { run } = detail
  return (
    <section className="run-detail" aria-label={`Run ${run.id}`}>
      <div className="card">
        <div className="run-head">
          <h2>{run.jobName}</h2>
          <StatusChip run={run} />
          <RunActions run={run} actions={actions} />
        </div>
        <Facts run={run} />
        <RunProgress run={run} />
      </div>
      <RunResult run={run} />
      <StepsView detail={detail} openSteps={openSteps} />
      <RunHistory detail={detail} />
    </section>
  )
}

function Facts({ run }: { readonly run: Run }) {
  const { id, createdAt, startedAt, finishedAt, attempt } = run
  const ms = startedAt !== null && finishedAt !== null ? Date.parse(finishedAt) - Date.parse(startedAt) : null
  return (
    <dl className="facts">
      <Fact name="Run" value={<code>{id}</code>} />
      <Fact name="Triggered" value={formatMoment(createdAt)} />
      {ms !== null && <Fact name="Took" value={formatDuration(ms)} />}
      {attempt > 1 && <Fact name="Attempt" value={String(attempt)} />}
    </dl>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function RunProgress({ run }: { readonly run: Run }) {
  const share = shareOf(run)
  const message = run.progress?.message
  return (
    <div className="progress-row">
      <progress
        className={`status-${run.status}`}
        max={1}
        // A run that waits for its turn has said nothing yet: empty, not restless.
        value={share ?? 0}
        aria-label="Progress"
      />
      <span className="progress-text">
        {message !== undefined && <span>{message}</span>} <span className="muted">{formatPercent(share ?? 0)}</span>
      </span>
    </div>
  )
}
