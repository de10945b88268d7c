import type { Run, Step } from '@coji/durably'
import { findRun } from '../database/find-run'
import { type OpenDatabase, withDatabase } from '../database/open'
import type { CommonOptions } from '../options'
import { tame, tameLines } from '../terminal/paint'
import { paintStatus } from '../terminal/statuses'
import { type Column, renderTable, shorten } from '../terminal/table'
import type { Terminal } from '../terminal/terminal'
import { ago, between, momentOf } from '../terminal/words'
import { explain } from './explain'

/** `durably run <id>` */
export function showRun(id: string, options: CommonOptions, terminal: Terminal): Promise<void> {
  return withDatabase(options, {}, async (database) => {
    const found = await readRun(database, id)
    if (options.json === true) terminal.printJson(found)
    else terminal.print(render(found, terminal))
  })
}

/** A run, its steps, and why it is where it is. */
export async function readRun(database: OpenDatabase, id: string) {
  const run = await findRun(database, id)
  const steps = await database.durably.getSteps(run.id)
  return { run, steps, explanation: await explain(database, run) }
}

type Found = Awaited<ReturnType<typeof readRun>>

function render({ run, steps, explanation }: Found, terminal: Terminal): string {
  const { paint } = terminal
  const title = `${paint('bold', tame(run.jobName))} ${run.id} ${paintStatus(paint, run.status)}`
  const parts = [title, '', tame(explanation), '', ...factLines(run, terminal)]
  const stack = run.errorDetail?.stack
  if (run.error !== null && stack !== undefined) parts.push('', paint('dim', tameLines(stack)))
  if (steps.length > 0) parts.push('', renderSteps(steps, terminal))
  return parts.join('\n')
}

function factLines(run: Run, { paint, width }: Terminal): readonly string[] {
  const facts = factsOf(run).filter((fact) => fact[1] !== null)
  const indent = Math.max(...facts.map(([name]) => name.length)) + 2
  const room = width === null ? null : width - indent
  return facts.map(([name, text]) => `${paint('dim', name.padEnd(indent))}${shorten(tame(text ?? ''), room)}`)
}

type Fact = readonly [name: string, text: string | null]

function factsOf(run: Run): readonly Fact[] {
  const now = Date.now()
  const moment = (instant: string | null) => (instant === null ? null : `${momentOf(instant)}, ${ago(instant, now)}`)
  const labels = Object.entries(run.labels).map(([name, value]) => `${name}=${value}`)
  const { current, total, message } = run.progress ?? {}
  return [
    ['input', textOf(run.payload)],
    ['output', run.status === 'completed' ? textOf(run.output) : null],
    ['error', run.error],
    ['progress', run.progress === null ? null : [`${current}/${total ?? '?'}`, message].filter(Boolean).join(' ')],
    ['triggered', moment(run.createdAt)],
    ['started', moment(run.startedAt)],
    ['ended', moment(run.finishedAt)],
    ['took', between(run.startedAt, run.finishedAt)],
    ['attempt', run.attempt > 1 ? String(run.attempt) : null],
    ['crashes', run.crashCount > 0 ? String(run.crashCount) : null],
    ['worker', run.ownerId],
    ['tenant', run.tenant === '' ? null : run.tenant],
    ['labels', labels.length === 0 ? null : labels.join(' ')],
    ['key', run.concurrencyKey === null ? null : `${run.concurrencyKey} (${run.concurrencyLimit} at a time)`],
    ['version', run.jobVersion],
    ['parent', run.parentRunId],
    ['fork of', run.forkedFrom],
  ]
}

function textOf(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value)
}

function renderSteps(steps: readonly Step[], { paint, width }: Terminal): string {
  const columns: readonly Column<Step>[] = [
    { title: 'STEP', value: ({ name }) => name, least: 10 },
    { title: 'STATUS', value: ({ status }) => status, paint: (text, { status }) => paintStep(paint, status, text) },
    { title: 'KIND', value: ({ kind }) => kind },
    { title: 'TRY', value: ({ attempt }) => String(attempt), isNumber: true },
    { title: 'TOOK', value: ({ startedAt, completedAt }) => between(startedAt, completedAt) ?? '', isNumber: true },
    { title: 'ABOUT', value: aboutStep, least: 10 },
  ]
  return renderTable(columns, steps, { width, titlePaint: (text) => paint('dim', text) })
}

function paintStep(paint: Terminal['paint'], status: Step['status'], text: string): string {
  if (status === 'completed') return paint('green', text)
  return paint(status === 'failed' ? 'red' : 'cyan', text)
}

function aboutStep({ status, error, dueAt, output }: Step): string {
  if (status === 'waiting') return dueAt === null ? 'until it comes' : `until ${momentOf(dueAt)} at the latest`
  return error ?? textOf(output) ?? ''
}
