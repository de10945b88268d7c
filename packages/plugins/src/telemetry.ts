import {
  context,
  type Context,
  metrics as globalMetrics,
  type MeterProvider,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type TracerProvider,
} from '@opentelemetry/api'
import type { Durably, EndedStatus, Plugin } from '@coji/durably-core'
import { type OptionNames, refuseUnknownOptions, type RunInfo, type StepInfo } from '@coji/durably-core/extend'
import { createInstruments, type Instruments } from './telemetry-instruments'
import { contextOf, traceParentOf } from './trace-parent'

/** Where spans and metrics go. */
export interface TelemetryOptions {
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider | undefined
  /** Default: the global one. */
  readonly meterProvider?: MeterProvider | undefined
}

const OPTIONS: OptionNames<TelemetryOptions> = { tracerProvider: true, meterProvider: true }

const SCOPE = '@coji/durably'

/** An execution of a run in this process. */
interface OpenAttempt {
  readonly run: RunInfo
  readonly span: Span
  readonly context: Context
  readonly steps: Set<Span>
}

/**
 * Spans and metrics for OpenTelemetry. Whoever triggers a run in a span is kept with it: the spans of the run, of its
 * attempts and steps, on whatever machine, belong to the same trace.
 */
export function withTelemetry(options: TelemetryOptions = {}): Plugin {
  refuseUnknownOptions('withTelemetry()', options, OPTIONS)
  const tracer = (options.tracerProvider ?? trace).getTracer(SCOPE)
  const instruments = createInstruments((options.meterProvider ?? globalMetrics).getMeter(SCOPE))
  const attempts = new Map<string, OpenAttempt>()

  function begin(run: RunInfo): OpenAttempt {
    // On Postgres a retry that waits for nothing may come before word of how the last attempt ended.
    end(run.runId, 'retry')
    const parent = contextOf(run.traceParent)
    const attributes = { ...attributesOf(run), 'durably.attempt': run.attempt, 'durably.tenant': run.tenant }
    const span = tracer.startSpan(`attempt ${run.jobName}`, { kind: SpanKind.CONSUMER, attributes }, parent)
    const attempt = { run, span, context: trace.setSpan(parent, span), steps: new Set<Span>() }
    attempts.set(run.runId, attempt)
    instruments.active.add(1, jobOf(run))
    if (run.queuedMs !== null) instruments.queueLatency.record(run.queuedMs / 1000, jobOf(run))
    return attempt
  }

  /** Its function may never settle: what became of the run is what ends it. */
  function end(runId: string, outcome: string, error?: string): OpenAttempt | undefined {
    const attempt = attempts.get(runId)
    if (attempt === undefined) return undefined
    attempts.delete(runId)
    for (const step of attempt.steps) step.setAttribute('durably.step.abandoned', true).end()
    endSpan(attempt.span, outcome, error)
    instruments.active.add(-1, jobOf(attempt.run))
    return attempt
  }

  function endRun({ runId, jobName }: OfRun, status: EndedStatus, error?: string): void {
    const attempt = end(runId, status, error)
    instruments.ended.add(1, { 'durably.job': jobName, 'durably.status': status })
    if (attempt === undefined) return
    const { run } = attempt
    const startTime = new Date(run.startedAt ?? Date.now())
    const span = tracer.startSpan(
      `run ${jobName}`,
      { kind: SpanKind.CONSUMER, attributes: attributesOf(run), startTime },
      contextOf(run.traceParent),
    )
    endSpan(span, status, error)
  }

  return {
    name: 'telemetry',
    traceParent: () => traceParentOf(trace.getActiveSpan()),
    aroundRun(run, next) {
      const attempt = begin(run)
      return context.with(attempt.context, next)
    },
    aroundStep(step, next) {
      const attempt = attempts.get(step.runId)
      return attempt === undefined ? next() : traceStep({ tracer, instruments, attempt, step, next })
    },
    install: (durably) => listen(durably, { end, endRun }),
  }
}

interface Ends {
  end(runId: string, outcome: string, error?: string): unknown
  endRun(event: OfRun, status: EndedStatus, error?: string): void
}

function listen(durably: Durably, { end, endRun }: Ends): () => void {
  const offs = [
    durably.on('run:complete', (event) => endRun(event, 'completed')),
    durably.on('run:fail', (event) => endRun(event, 'failed', event.error)),
    durably.on('run:timeout', (event) => endRun(event, 'timed_out', event.error)),
    durably.on('run:cancel', (event) => {
      if (!event.requested) endRun(event, 'cancelled')
    }),
    durably.on('run:retry', ({ runId, byHand, error }) => {
      if (!byHand) end(runId, 'retry', error ?? undefined)
    }),
    durably.on('run:suspend', ({ runId }) => end(runId, 'suspend')),
    durably.on('run:release', ({ runId }) => end(runId, 'release')),
    durably.on('run:park', ({ runId }) => end(runId, 'park')),
    durably.on('worker:lease-lost', ({ runId }) => end(runId, 'lease-lost')),
  ]
  return () => {
    for (const off of offs) off()
  }
}

interface TracedStep {
  readonly tracer: ReturnType<TracerProvider['getTracer']>
  readonly instruments: Instruments
  readonly attempt: OpenAttempt
  readonly step: StepInfo
  readonly next: () => Promise<unknown>
}

async function traceStep({ tracer, instruments, attempt, step, next }: TracedStep): Promise<unknown> {
  const attributes = { ...attributesOf(step), 'durably.step': step.stepName, 'durably.step.index': step.stepIndex }
  const span = tracer.startSpan(`step ${step.stepName}`, { attributes }, attempt.context)
  const beganAt = performance.now()
  attempt.steps.add(span)
  // Of one that its run was taken from the span has ended already.
  const settle = (outcome: 'completed' | 'failed', error?: string) => {
    const attributes = { ...jobOf(step), 'durably.status': outcome }
    instruments.stepDuration.record((performance.now() - beganAt) / 1000, attributes)
    if (attempt.steps.delete(span)) endSpan(span, outcome, error)
  }
  try {
    const value = await context.with(trace.setSpan(attempt.context, span), next)
    settle('completed')
    return value
  } catch (error) {
    settle('failed', error instanceof Error ? error.message : String(error))
    throw error
  }
}

function endSpan(span: Span, outcome: string, error?: string): void {
  span.setAttribute('durably.outcome', outcome)
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
  span.end()
}

interface OfRun {
  readonly runId: string
  readonly jobName: string
}

function attributesOf({ runId, jobName }: OfRun) {
  return { 'durably.run': runId, 'durably.job': jobName }
}

function jobOf({ jobName }: OfRun) {
  return { 'durably.job': jobName }
}
