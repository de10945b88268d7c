import type { Durably } from '@coji/durably-core'
import type { RunRecord } from '@coji/durably-core/storage'
import { admit } from './access'
import type { Call } from './route'
import type { Source } from './streams'
import type { RunHint } from './wire'

/** So long hints gather, for all readers, before one query looks what became of their runs. */
const GATHER_MS = 50
/** What waits for one reader. Who is behind by more is told to read everything anew. */
const MOST_WAITING = 1000
const MOST_LOOKED_AT = 500

const RELOAD = 'event: reload\ndata: {}\n\n'

/** `GET /events`: which runs changed, as far as this process hears of it. */
export async function hint({ access, server, request }: Call): Promise<Response> {
  const source = new HintSource(server.hints, {
    tenant: access.tenant,
    check: async () => (await admit(server, { request, action: 'read' })).tenant === access.tenant,
  })
  return server.streams.open(source)
}

/** Hears of changes for all readers of a server, and looks them up together. */
export class Hints {
  readonly #durably: Durably
  readonly #readers = new Set<HintSource>()
  readonly #changed = new Set<string>()
  #unwatch: (() => void) | null = null
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor(durably: Durably) {
    this.#durably = durably
  }

  enter(reader: HintSource): void {
    this.#readers.add(reader)
    this.#unwatch ??=
      this.#durably.storage.watch?.subscribe(
        (told) => {
          if (told.kind === 'run') this.#note(told.runId)
        },
        { fromElsewhere: true },
      ) ?? null
  }

  leave(reader: HintSource): void {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return
    this.#unwatch?.()
    this.#unwatch = null
    this.#changed.clear()
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #note(runId: string): void {
    this.#changed.add(runId)
    this.#timer ??= setTimeout(() => void this.#look(), GATHER_MS)
  }

  async #look(): Promise<void> {
    const ids = [...this.#changed]
    this.#changed.clear()
    this.#timer = null
    const runs = ids.length > MOST_LOOKED_AT ? null : await this.#durably.storage.getRuns({ ids }).catch(() => null)
    for (const reader of this.#readers) {
      if (runs === null) reader.reload()
      else reader.tell(runs, ids)
    }
  }
}

interface HintSourceOptions {
  readonly tenant: string | null
  /** Whether who reads may still, and the runs of the same tenant. */
  readonly check: () => Promise<boolean>
}

/** One reader: what it has not read yet. */
export class HintSource implements Source {
  readonly #hints: Hints
  readonly #options: HintSourceOptions
  readonly #waiting = new Map<string, RunHint>()
  #mustReload = false
  #isLeft = false
  #wake: (() => void) | null = null

  constructor(hints: Hints, options: HintSourceOptions) {
    this.#hints = hints
    this.#options = options
    hints.enter(this)
  }

  tell(runs: readonly RunRecord[], ids: readonly string[]): void {
    const { tenant } = this.#options
    const own = runs.filter((run) => tenant === null || run.tenant === tenant)
    for (const { id, status, version } of own) this.#waiting.set(id, { id, status, version })
    // Whose run it was that is gone, nobody knows any more.
    const found = new Set(runs.map(({ id }) => id))
    const gone = tenant === null ? ids.filter((id) => !found.has(id)) : []
    for (const id of gone) this.#waiting.set(id, { id, status: null, version: null })
    if (this.#waiting.size > MOST_WAITING) this.reload()
    if (this.#waiting.size > 0) this.#wake?.()
  }

  reload(): void {
    this.#waiting.clear()
    this.#mustReload = true
    this.#wake?.()
  }

  async next(): Promise<string | null> {
    while (!this.#isLeft && !this.#mustReload && this.#waiting.size === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if (this.#isLeft) return null
    const told = [...this.#waiting.values()].map((each) => `data: ${JSON.stringify(each)}\n\n`)
    const text = [...(this.#mustReload ? [RELOAD] : []), ...told].join('')
    this.#waiting.clear()
    this.#mustReload = false
    return text
  }

  leave(): void {
    this.#isLeft = true
    this.#hints.leave(this)
    this.#wake?.()
  }

  async isAllowed(): Promise<boolean> {
    return this.#options.check()
  }
}
