import type { DurablyEvent, Progress, StoredEvent } from '@coji/durably-core'

/** What is told of a run: by its history, or, without a number, by the instance that executes it. */
export type RunEvent = StoredEvent | DurablyEvent

type StepEvent = Extract<RunEvent, { readonly type: 'step:start' | 'step:complete' | 'step:fail' }>

/** A step as its events told of it. */
export interface LiveStep {
  readonly name: string
  readonly index: number
  readonly startedAt: string
  /** `null` while its body runs. */
  readonly end:
    | { readonly status: 'completed'; readonly at: string; readonly output: unknown }
    | { readonly status: 'failed'; readonly at: string; readonly error: string }
    | null
}

/** What a stream has emitted since it began, or began again. */
export interface StreamedStep {
  readonly name: string
  readonly chunks: readonly unknown[]
  /** All chunks that are text, one after the other. */
  readonly text: string
}

interface GrowingStream {
  readonly name: string
  chunks: unknown[]
  text: string
  /** As it was shown last; `null`: it has grown since. */
  shown: StreamedStep | null
}

/** They end an execution, and with it the bodies that it had begun. */
const ENDS_OF_EXECUTIONS: ReadonlySet<string> = new Set([
  ...(['run:start', 'run:suspend', 'run:park', 'run:release', 'run:recover', 'run:retry'] as const),
  ...(['run:complete', 'run:fail', 'run:timeout', 'run:cancel'] as const),
])

/** When something was told: as the how manyth event that was heard, and under which number of the history. */
interface Told {
  readonly heard: number
  readonly seq: number
}

/** What the events of a run tell before the database has been read again: bodies that run, streams, progress. */
export class LiveRun {
  readonly #steps = new Map<string, LiveStep & { readonly told: Told }>()
  readonly #streams = new Map<string, GrowingStream>()
  #progress: { readonly value: Progress; readonly told: Told } | null = null
  #heard = 0
  #seq = 0
  #read: Told = { heard: 0, seq: 0 }

  /** The number of the last event of the history. */
  get seq(): number {
    return this.#seq
  }

  /** How many events were heard: what is read from now on has them. */
  get heard(): number {
    return this.#heard
  }

  /** If it is newer than what was read. */
  get progress(): Progress | null {
    return this.#progress !== null && this.#isNews(this.#progress.told) ? this.#progress.value : null
  }

  /** Those whose bodies run, and those that have ended since the database was read. */
  get steps(): readonly LiveStep[] {
    return [...this.#steps.values()].filter(({ end, told }) => end === null || this.#isNews(told))
  }

  /** In the order in which they began. The same objects until they grow. */
  get streams(): readonly StreamedStep[] {
    return [...this.#streams.values()].map((stream) => {
      stream.shown ??= { name: stream.name, chunks: stream.chunks.slice(), text: stream.text }
      return stream.shown
    })
  }

  /** `false`: it was heard before. */
  hear(event: RunEvent): boolean {
    const { seq } = event
    if (seq !== undefined) {
      if (seq <= this.#seq) return false
      this.#seq = seq
    }
    this.#heard += 1
    if (ENDS_OF_EXECUTIONS.has(event.type)) this.#endBodies()
    this.#note(event)
    return true
  }

  /** What was told before the database was read is in it. */
  noteRead(read: Told): void {
    this.#read = read
    for (const [name, { end, told }] of this.#steps) if (end !== null && !this.#isNews(told)) this.#steps.delete(name)
  }

  #isNews({ heard, seq }: Told): boolean {
    return heard > this.#read.heard && seq > this.#read.seq
  }

  #now(seq = Number.POSITIVE_INFINITY): Told {
    return { heard: this.#heard, seq }
  }

  #note(event: RunEvent): void {
    switch (event.type) {
      case 'step:start':
        this.#setStep(event, { startedAt: event.timestamp, end: null })
        break
      case 'step:complete':
        this.#endStep(event, { status: 'completed', at: event.timestamp, output: event.output })
        break
      case 'step:fail':
        this.#endStep(event, { status: 'failed', at: event.timestamp, error: event.error })
        break
      case 'step:chunk':
        this.#append(event.stepName, event.chunk)
        break
      case 'step:restart':
        this.#streams.delete(event.stepName)
        break
      case 'run:progress':
        this.#progress = { value: event.progress, told: this.#now(event.seq) }
    }
  }

  #setStep({ stepName: name, stepIndex: index, seq }: StepEvent, step: Pick<LiveStep, 'startedAt' | 'end'>): void {
    this.#steps.set(name, { name, index, ...step, told: this.#now(seq) })
  }

  #endStep(event: StepEvent, end: NonNullable<LiveStep['end']>): void {
    this.#setStep(event, { startedAt: this.#steps.get(event.stepName)?.startedAt ?? event.timestamp, end })
  }

  #endBodies(): void {
    for (const [name, { end }] of this.#steps) if (end === null) this.#steps.delete(name)
  }

  #append(name: string, chunk: unknown): void {
    const stream = this.#streams.get(name) ?? { name, chunks: [], text: '', shown: null }
    stream.chunks.push(chunk)
    if (typeof chunk === 'string') stream.text += chunk
    stream.shown = null
    this.#streams.set(name, stream)
  }
}
