import type { EventTemplate, Lease, RunCommit, Storage } from '../../port'
import { scriptOf } from './judge'
import { historyOf, type ModelRun, type Tale } from './model-run'
import { bodyFails, callsOf, joined, sayingsOf, type ScriptStream } from './scripts'
import { must, mustEqual } from './violation'

/** A body of a stream that was begun. */
export interface StreamTry {
  readonly runId: string
  readonly stepName: string
  /** `undefined` when it cannot be told from others. */
  readonly lease: Lease | undefined
}

export interface JudgeStreamsParams {
  readonly run: ModelRun
  readonly commit: RunCommit
  readonly keepsHistory: boolean
  readonly tries: ReadonlyMap<string, StreamTry>
}

interface Told extends JudgeStreamsParams {
  readonly step: ScriptStream
  readonly what: string
}

/** Takes in what an accepted commit tells of streams, before its rows are taken in. */
export function judgeStreams(params: JudgeStreamsParams): void {
  const { run, commit, keepsHistory } = params
  for (const call of callsOf(scriptOf(run))) {
    if (call.kind !== 'stream') continue
    const told = { ...params, step: call.step, what: `stream ${call.name} of ${run.wanted.id}` }
    for (const event of commit.events) judgeEvent(told, event)
    if (keepsHistory) judgeEnd(told)
  }
}

function judgeEvent(told: Told, { type, payload }: EventTemplate): void {
  if (!type.startsWith('step:')) return
  const { stepName, chunk } = JSON.parse(payload) as { readonly stepName: string; readonly chunk?: unknown }
  if (stepName !== told.step.name) return
  if (type === 'step:start') begin(told)
  if (type === 'step:restart') restart(told, openTale(told, type))
  if (type === 'step:chunk') say(told, openTale(told, type), chunk)
  if (type === 'step:complete' || type === 'step:fail') openTale(told, type).isOpen = false
}

function begin({ run, commit, step, what }: Told): void {
  const before = run.tales.get(step.name)
  const isRecorded = run.liveSteps.get(step.name)?.status === 'completed'
  must(!isRecorded, () => `${what} starts anew, and its result was recorded`)
  run.tales.set(step.name, {
    hasForerunner: before !== undefined && (before.hasForerunner || before.chunks.length > 0),
    lease: commit.lease,
    isOpen: true,
    restarts: 0,
    chunks: [],
  })
}

/** Under the lease that began it: whoever else has the run has to say that it starts anew. */
function openTale({ run, commit, step, what }: Told, type: string): Tale {
  const tale = run.tales.get(step.name)
  const isOpen = tale?.isOpen === true && nameOf(tale.lease) === nameOf(commit.lease)
  must(isOpen, () => `${what} tells of a ${type} under epoch ${commit.lease.epoch}, and is not open there`)
  return tale as Tale
}

function restart({ what }: Told, tale: Tale): void {
  must(tale.hasForerunner, () => `${what} says that it starts again, and nothing of it was stored before`)
  must(tale.chunks.length === 0, () => `${what} says that it starts again after it has begun to speak`)
  must(tale.restarts === 0, () => `${what} says twice that it starts again`)
  tale.restarts += 1
}

function say({ run, commit, tries, step, what }: Told, tale: Tale, chunk: unknown): void {
  must(!tale.hasForerunner || tale.restarts === 1, () => `${what} speaks again, and did not say that it starts again`)
  const spoken = tries.get(tryOf(chunk))
  const found = [spoken?.runId, spoken?.stepName, nameOf(spoken?.lease ?? commit.lease)]
  const expected = [run.wanted.id, step.name, nameOf(commit.lease)]
  mustEqual(found, expected, `the try that said ${JSON.stringify(chunk)} in ${what}`)
  tale.chunks.push(chunk)
}

/** A try that is recorded has said all that its script says, and no other try has said anything behind its start. */
function judgeEnd({ run, commit, step, what }: Told): void {
  const row = commit.steps.find(
    ({ name, status }) => name === step.name && status !== 'started' && status !== 'waiting',
  )
  if (row === undefined) return
  const tale = run.tales.get(step.name)
  must(tale?.isOpen === false, () => `${what} is ${row.status}, and no event tells of it`)
  const isFailing = bodyFails(step, run.attempt, historyOf(run, step.name).failures)
  const chunks = tale?.chunks ?? []
  const expected = sayingsOf(step, tryOf(chunks[0]), isFailing).map(({ chunk }) => chunk)
  mustEqual(joined(chunks), joined(expected), `what ${what} is stored to have said when it was ${row.status}`)
}

/** As a reader of the history does it: of a stream that is recorded, what comes after its last new start. */
export async function judgeStories({ events }: Storage, runs: Iterable<ModelRun>): Promise<void> {
  for (const run of runs) {
    const { id } = run.wanted
    const recorded = callsOf(scriptOf(run)).filter(({ name }) => run.liveSteps.get(name)?.status === 'completed')
    const stored = recorded.some(({ kind }) => kind === 'stream') ? ((await events?.getEvents(id, {})) ?? []) : []
    for (const call of recorded) if (call.kind === 'stream') judgeStory(call.step, stored, id)
  }
}

function judgeStory(step: ScriptStream, stored: readonly EventTemplate[], runId: string): void {
  let chunks: unknown[] = []
  for (const { type, payload } of stored) {
    if (type !== 'step:restart' && type !== 'step:chunk') continue
    const { stepName, chunk } = JSON.parse(payload) as { readonly stepName: string; readonly chunk?: unknown }
    if (stepName !== step.name) continue
    if (type === 'step:restart') chunks = []
    else chunks.push(chunk)
  }
  const expected = sayingsOf(step, tryOf(chunks[0]), false).map(({ chunk }) => chunk)
  mustEqual(joined(chunks), joined(expected), `what a reader takes stream ${step.name} of ${runId} to have said`)
}

function tryOf(chunk: unknown): string {
  if (typeof chunk === 'string') return chunk.split('.')[0] ?? ''
  return (chunk as { readonly of?: string } | undefined)?.of ?? ''
}

function nameOf({ runId, epoch, token }: Lease): string {
  return `${runId}/${epoch}/${token}`
}
