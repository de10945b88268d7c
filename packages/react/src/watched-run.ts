import type { Run } from '@coji/durably-core'
import { coalesce } from './coalesce'
import { followRun, hearInstance } from './follow-run'
import { LiveRun, type RunEvent, type StreamedStep } from './live-run'
import { Kept, type Observed } from './observed'
import type { RunApi, RunHint } from './run-api'
import type { RunHints } from './run-hints'
import { LOADING, MISSING, partOf, stepsOf, type RunRead, type RunView, type StepView } from './run-view'
import { delayAfter, toError } from './trouble'

const READ_EVERY_MS = 250
/** As often as a screen shows something. */
const SHOW_EVERY_MS = 16

/** So often the end of a run waits for a connection that would bring its last words. */
const LAST_WORDS_TRIES = 3

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
  readonly #onEvents = new Set<(event: RunEvent | null) => void>()
  readonly #refresh = coalesce(READ_EVERY_MS, () => this.#look())
  #read: RunRead | null = null
  /** Read, but its last events have not been heard yet. */
  #readAhead: RunRead | null = null
  #follower: AbortController | null = null
  #hearsInstance: (() => void) | null = null
  /** While its events do not tell of it, others have to. */
  #hintsWanted: (() => void) | null = null
  #hasHistory = true
  /** Up to here the history was there before anybody looked. */
  #replayUpTo: number | null = null
  #failures = 0
  #readTrouble: Error | null = null
  #followTrouble: Error | null = null
  #again: ReturnType<typeof setTimeout> | undefined
  #showing: ReturnType<typeof setTimeout> | undefined
  #steps: readonly StepView[] = NONE
  #stepsAreOld = false

  constructor(params: WatchedRunParams) {
    this.#params = params
  }

  readonly get = this.#view.get
  readonly subscribe = this.#view.subscribe

  get isKept(): boolean {
    return this.#view.isKept
  }

  /** What somebody else has just read, so that nobody has to wait for it. */
  seed(run: Run): void {
    if (this.#read === null) this.#accept({ run, steps: NONE }, this.#live.heard)
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
      this.#stopFollowing()
      this.#hintsWanted?.()
      this.#hintsWanted = null
    }
  }

  #onHint({ runId, isUrgent }: RunHint): void {
    if (runId !== null && runId !== this.#params.runId) return
    // Of what is followed its events tell, and what has ended does not change unnoticed.
    const isQuiet = this.#follower !== null || (runId === null && this.#hasEnded)
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

  #noteFollowTrouble(error: Error, failures: number): void {
    this.#followTrouble = error
    // Better the end without its last words than nothing.
    if (failures >= LAST_WORDS_TRIES) this.#acceptReadAhead()
    this.#show()
  }

  #noteMissing(): void {
    this.#stopFollowing()
    this.#wantHints()
    this.#read = null
    this.#view.set(MISSING)
  }

  /** Nobody sees the end of a run before its last words: what its streams have said is only in its events. */
  #adopt(read: RunRead, heard: number): void {
    const { finishedAt, lastEventSequence } = read.run
    const isAhead = finishedAt !== null && lastEventSequence > this.#live.seq
    const hasMoreToSay =
      this.#follower !== null || (this.#hasHistory && read.steps.some(({ kind }) => kind === 'stream'))
    if (isAhead && hasMoreToSay && this.isKept) {
      this.#readAhead = read
      if (this.#follower === null) void this.#follow(lastEventSequence)
    } else this.#accept(read, heard)
  }

  #accept(read: RunRead, heard: number): void {
    this.#read = read
    this.#readAhead = null
    this.#stepsAreOld = true
    this.#live.noteRead({ heard, seq: read.run.lastEventSequence })
    if (this.isKept) this.#followIfNeeded(read)
    this.#wantHints()
    this.#show()
    for (const listener of [...this.#onEvents]) listener(null)
  }

  #followIfNeeded({ run }: RunRead): void {
    if (run.finishedAt !== null) {
      if (run.lastEventSequence <= this.#live.seq) this.#stopFollowing()
    } else if (!this.#hasHistory) {
      this.#hearsInstance ??= hearInstance(this.#params.api, run.id, (event) => this.#hear(event))
    } else if (this.#follower === null) {
      void this.#follow(run.lastEventSequence)
    }
  }

  /** A run that is followed has one connection, and needs no other. */
  #wantHints(): void {
    if (this.#follower === null && this.isKept) this.#hintsWanted ??= this.#params.hints.want()
    else {
      this.#hintsWanted?.()
      this.#hintsWanted = null
    }
  }

  async #follow(lastEventSequence: number): Promise<void> {
    const { api, runId } = this.#params
    const follower = new AbortController()
    this.#follower = follower
    this.#replayUpTo ??= lastEventSequence
    const heardBefore = this.#live.heard
    const hasHistory = await followRun({
      api,
      runId,
      signal: follower.signal,
      heardUpTo: () => this.#live.seq,
      onEvent: (event) => this.#hear(event),
      onTrouble: (error, failures) => this.#noteFollowTrouble(error, failures),
    })
    if (this.#follower !== follower) return
    this.#follower = null
    this.#followTrouble = null
    this.#hasHistory = hasHistory
    this.#replayUpTo = 0
    this.#acceptReadAhead()
    this.#wantHints()
    this.#show()
    if (this.#hasEnded) return
    // It ended, or it is gone, or nobody keeps its history.
    if (this.#live.heard > heardBefore) this.#refresh.now()
    else this.#refresh.soon()
    if (!hasHistory && this.#read !== null) this.#followIfNeeded(this.#read)
  }

  #stopFollowing(): void {
    this.#follower?.abort()
    this.#follower = null
    this.#followTrouble = null
    this.#hearsInstance?.()
    this.#hearsInstance = null
  }

  #hear(event: RunEvent): void {
    if (!this.#live.hear(event)) return
    this.#followTrouble = null
    if (event.type.startsWith('step:') || event.type.startsWith('run:')) this.#stepsAreOld = true
    if ((this.#readAhead?.run.lastEventSequence ?? Number.POSITIVE_INFINITY) <= this.#live.seq) this.#acceptReadAhead()
    const readUpTo = (this.#readAhead ?? this.#read)?.run.lastEventSequence ?? 0
    const isReplayed = event.seq !== undefined && event.seq <= readUpTo
    if (!isReplayed && event.type.startsWith('run:') && event.type !== 'run:progress') this.#refreshFor(event)
    this.#showSoon()
    for (const listener of [...this.#onEvents]) listener(event)
  }

  #refreshFor({ type }: RunEvent): void {
    if (ENDINGS.has(type)) this.#refresh.now()
    else this.#refresh.soon()
  }

  #acceptReadAhead(): void {
    if (this.#readAhead !== null) this.#accept(this.#readAhead, this.#live.heard)
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
    const trouble = this.#followTrouble ?? this.#readTrouble
    if (read === null) return { ...this.#view.get(), trouble }
    // What happened before anybody looked is not shown a second time.
    const isReplaying = this.#replayUpTo !== null && this.#live.seq < this.#replayUpTo
    const streams = isReplaying ? NONE : this.#streamsNow()
    const isFollowed = this.#follower !== null && this.#live.seq > 0 && !isReplaying && this.#followTrouble === null
    return {
      ...partOf(read.run),
      progress: (isReplaying ? null : this.#live.progress) ?? read.run.progress,
      steps: isReplaying ? read.steps : this.#stepsNow(read),
      streams,
      text: streams.at(-1)?.text ?? '',
      isLoading: false,
      isMissing: false,
      isLive: !this.#hasEnded && (isFollowed || this.#hearsInstance !== null),
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

const ENDINGS: ReadonlySet<string> = new Set(['run:complete', 'run:fail', 'run:timeout', 'run:cancel'])
