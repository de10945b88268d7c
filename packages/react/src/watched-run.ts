import type { Run } from '@coji/durably-core'
import { coalesce } from './coalesce'
import { LiveRun, type RunEvent, type StreamedStep } from './live-run'
import { Kept, type Observed } from './observed'
import type { RunApi, RunHint } from './run-api'
import type { RunHints } from './run-hints'
import { RunTail } from './run-tail'
import { LOADING, MISSING, partOf, stepsOf, type RunRead, type RunView, type StepView } from './run-view'
import { delayAfter, toError } from './trouble'

const READ_EVERY_MS = 250
/** As often as a screen shows something. */
const SHOW_EVERY_MS = 16
/** So often the end of a run waits for a connection that would bring its last words. */
const LAST_WORDS_TRIES = 3

const ENDINGS: ReadonlySet<string> = new Set(['run:complete', 'run:fail', 'run:timeout', 'run:cancel'])
const NONE: readonly never[] = []

export interface WatchedRunParams {
  readonly api: RunApi
  readonly hints: RunHints
  readonly runId: string
}

/**
 * One run, kept up to date while somebody listens. What the run is was read from the database; its events say when to read
 * it again, and what cannot be read: which bodies run, and what streams emit.
 */
export class WatchedRun implements Observed<RunView> {
  readonly #params: WatchedRunParams
  readonly #view = new Kept<RunView>(LOADING, () => this.#start())
  readonly #live = new LiveRun()
  readonly #tail: RunTail
  readonly #onEvents = new Set<(event: RunEvent | null) => void>()
  readonly #refresh = coalesce(READ_EVERY_MS, () => this.#look())
  #read: RunRead | null = null
  /** Read, but its last events have not been heard yet. */
  #readAhead: RunRead | null = null
  /** Up to here the history was there before anybody looked. */
  #replayUpTo: number | null = null
  #failures = 0
  #readTrouble: Error | null = null
  #again: ReturnType<typeof setTimeout> | undefined
  #showing: ReturnType<typeof setTimeout> | undefined
  #steps: readonly StepView[] = NONE
  #stepsAreOld = false

  constructor(params: WatchedRunParams) {
    this.#params = params
    this.#tail = new RunTail({
      ...params,
      heardUpTo: () => this.#live.seq,
      onEvent: (event) => this.#hear(event),
      onTrouble: (failures) => this.#onTrouble(failures),
      onEnd: () => this.#onEnd(),
    })
  }

  readonly get = this.#view.get
  readonly subscribe = this.#view.subscribe

  get isKept(): boolean {
    return this.#view.isKept
  }

  /** A run that was just triggered, so that nobody has to wait for it. One that is older has to be read with its steps. */
  seed(run: Run): void {
    if (this.#read === null && run.startedAt === null) this.#accept({ run, steps: NONE }, this.#live.heard)
  }

  /** Hears each event, and `null` whenever the run was read. */
  onEvent(listener: (event: RunEvent | null) => void): () => void {
    this.#onEvents.add(listener)
    return () => this.#onEvents.delete(listener)
  }

  close(): void {
    this.#view.close()
  }

  #start(): () => void {
    const stopListening = this.#params.hints.listen((hint) => this.#onHint(hint))
    this.#refresh.now()
    return () => {
      stopListening()
      this.#refresh.callOff()
      clearTimeout(this.#again)
      clearTimeout(this.#showing)
      this.#showing = undefined
      this.#tail.rest()
    }
  }

  #onHint({ runId, isUrgent }: RunHint): void {
    if (runId !== null && runId !== this.#params.runId) return
    // Of what is followed its events tell, and what has ended does not change unnoticed.
    const isQuiet = this.#tail.isFollowing || (runId === null && this.#hasEnded)
    if (isUrgent) this.#refresh.now()
    else if (!isQuiet) this.#refresh.soon()
  }

  get #hasEnded(): boolean {
    return this.#read !== null && this.#read.run.finishedAt !== null
  }

  async #look(): Promise<void> {
    const { api, runId } = this.#params
    const { heard } = this.#live
    try {
      const run = await api.getRun(runId)
      // After the run: what it says has happened is there by now.
      const steps = run === null ? NONE : await api.getSteps(runId)
      this.#failures = 0
      this.#readTrouble = null
      if (run === null) this.#noteMissing()
      else this.#adopt({ run, steps }, heard)
    } catch (error) {
      this.#failures += 1
      this.#readTrouble = toError(error)
      this.#show()
      if (this.isKept) this.#again = setTimeout(this.#refresh.soon, delayAfter(this.#failures))
    }
  }

  #noteMissing(): void {
    if (this.isKept) this.#tail.attendNothing()
    this.#read = null
    this.#readAhead = null
    this.#view.set(MISSING)
  }

  /** Nobody sees the end of a run before its last words: what its streams have said is only in its events. */
  #adopt(read: RunRead, heard: number): void {
    const { run, steps } = read
    const isAhead = run.finishedAt !== null && run.lastEventSequence > this.#live.seq
    const hasStreams = steps.some(({ kind }) => kind === 'stream')
    const hasMoreToSay = this.#tail.isFollowing || (hasStreams && this.#tail.hasHistory)
    if (!isAhead || !hasMoreToSay || !this.isKept) {
      this.#accept(read, heard)
      return
    }
    this.#readAhead = read
    this.#replayUpTo ??= run.lastEventSequence
    this.#tail.follow()
  }

  #accept(read: RunRead, heard: number): void {
    this.#read = read
    this.#readAhead = null
    this.#replayUpTo ??= read.run.lastEventSequence
    this.#stepsAreOld = true
    this.#live.noteRead({ heard, seq: read.run.lastEventSequence })
    if (this.isKept) this.#tail.attend(read.run)
    this.#show()
    for (const listener of [...this.#onEvents]) listener(null)
  }

  #acceptReadAhead(): void {
    if (this.#readAhead !== null) this.#accept(this.#readAhead, this.#live.heard)
  }

  #onTrouble(failures: number): void {
    // Better the end without its last words than nothing.
    if (failures >= LAST_WORDS_TRIES) this.#acceptReadAhead()
    this.#show()
  }

  #onEnd(): void {
    this.#replayUpTo = 0
    this.#acceptReadAhead()
    this.#show()
    if (this.#hasEnded || this.#read === null) return
    this.#refresh.soon()
    if (!this.#tail.hasHistory) this.#tail.attend(this.#read.run)
  }

  #hear(event: RunEvent): void {
    if (!this.#live.hear(event)) return
    if (event.type.startsWith('step:') || event.type.startsWith('run:')) this.#stepsAreOld = true
    if (this.#readAhead !== null && this.#readAhead.run.lastEventSequence <= this.#live.seq) this.#acceptReadAhead()
    const readUpTo = (this.#readAhead ?? this.#read)?.run.lastEventSequence ?? 0
    const isNews = event.seq === undefined || event.seq > readUpTo
    if (isNews && ENDINGS.has(event.type)) this.#refresh.now()
    else if (isNews && event.type.startsWith('run:') && event.type !== 'run:progress') this.#refresh.soon()
    this.#showSoon()
    for (const listener of [...this.#onEvents]) listener(event)
  }

  #showSoon(): void {
    this.#showing ??= setTimeout(() => this.#show(), SHOW_EVERY_MS)
  }

  #show(): void {
    clearTimeout(this.#showing)
    this.#showing = undefined
    const view = this.#viewNow()
    const before = this.#view.get()
    const isSame = Object.entries(view).every(([name, value]) => Object.is(value, before[name as keyof RunView]))
    if (!isSame) this.#view.set(view)
  }

  #viewNow(): RunView {
    const read = this.#read
    const trouble = this.#tail.trouble ?? this.#readTrouble
    if (read === null) return { ...this.#view.get(), trouble }
    // What happened before anybody looked is not shown a second time.
    const isReplaying = this.#tail.isFollowing && this.#live.seq < (this.#replayUpTo ?? 0)
    const streams = isReplaying ? NONE : this.#streamsNow()
    return {
      ...partOf(read.run),
      progress: (isReplaying ? null : this.#live.progress) ?? read.run.progress,
      steps: isReplaying ? read.steps : this.#stepsNow(read),
      streams,
      text: streams.at(-1)?.text ?? '',
      isLoading: false,
      isMissing: false,
      isLive: this.#tail.isHearing && !isReplaying && !this.#hasEnded,
      trouble,
    }
  }

  #stepsNow(read: RunRead): readonly StepView[] {
    if (this.#stepsAreOld) this.#steps = stepsOf(read, this.#live)
    this.#stepsAreOld = false
    return this.#steps
  }

  #streamsNow(): readonly StreamedStep[] {
    const before = this.#view.get().streams
    const streams = this.#live.streams
    const isSame = streams.length === before.length && streams.every((stream, index) => stream === before[index])
    return isSame ? before : streams
  }
}
