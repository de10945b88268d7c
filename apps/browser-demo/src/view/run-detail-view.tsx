import type { ReactNode } from 'react'
import type { Run } from '@coji/durably'
import type { DemoActions } from '../demo-actions'
import type { LiveStep, RunDetail } from '../demo-state'
import { formatDuration, formatElapsed, formatMoment, formatPercent } from '../format'
import { durationOf, shareOf, waitText } from '../run-status'
import { RunActions } from './run-actions'
import { RunHistory } from './run-history'
import { RunResult } from './run-result'
import { StatusChip } from './status-chip'
import { StepsView } from './steps-view'
import { useNowUntil } from './use-now'

interface RunDetailViewProps {
  readonly detail: RunDetail
  readonly liveSteps: readonly LiveStep[]
  readonly actions: DemoActions
}

export function RunDetailView({ detail, liveSteps, actions }: RunDetailViewProps) {
  const { run } = detail
  return (
    <section className="run-detail" aria-label={`Run ${run.id}`}>
      <div className="card">
        <div className="run-head">
          <div className="run-title">
            <h2>{run.jobName}</h2>
            <StatusChip run={run} />
          </div>
          <RunActions run={run} actions={actions} />
        </div>
        <RunProgress run={run} />
        <Facts run={run} />
      </div>
      <StepsView detail={detail} liveSteps={liveSteps} />
      <RunResult run={run} />
      <RunHistory detail={detail} />
    </section>
  )
}

function Facts({ run }: { readonly run: Run }) {
  const { id, createdAt, attempt } = run
  return (
    <dl className="facts">
      <Fact name={run.finishedAt === null ? 'So far' : 'Took'} value={<Duration run={run} />} />
      <Fact name="Triggered" value={formatMoment(createdAt)} />
      {attempt > 1 && <Fact name="Attempt" value={String(attempt)} />}
      <Fact name="Run" value={<code>{id}</code>} />
    </dl>
  )
}

function Duration({ run }: { readonly run: Run }) {
  const ms = durationOf(run, useNowUntil(run.finishedAt))
  if (ms === null) return '–'
  return run.finishedAt === null ? formatElapsed(ms) : formatDuration(ms)
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
  const share = shareOf(run) ?? 0
  const wait = waitText(run, useNowUntil(run.finishedAt))
  return (
    <div className="progress-row">
      {/* A run that waits for its turn has said nothing yet: empty, not restless. */}
      <progress className={`status-${run.status}`} max={1} value={share} aria-label="Progress" />
      <p className="progress-text">
        <span>{wait ?? run.progress?.message ?? ''}</span> <span className="muted">{formatPercent(share)}</span>
      </p>
    </div>
  )
}
