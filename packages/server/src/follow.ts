import { HistoryRequiredError, isEnded, type Run, type RunStatus, type StoredEvent } from '@coji/durably-core'
import { admitTo } from './access'
import { HttpProblem } from './problem'
import type { RunCall } from './route'
import type { Source } from './streams'

/** `GET /runs/:id/events`: what was and what will be, with its numbers, until the run has ended. */
export async function follow(call: RunCall<{ readonly after?: number | undefined }>): Promise<Response> {
  const { run, server } = call
  const after = startOf(call)
  if (run.lastEventSequence === 0 && (isEnded(run.status) || !server.durably.health().history)) {
    throw new HistoryRequiredError(`Following run ${run.id}`)
  }
  return server.streams.open(new RunSource(call, after))
}

/** A browser that comes back says itself what it saw last. */
function startOf({ request, query }: RunCall<{ readonly after?: number | undefined }>): number {
  const last = request.headers.get('last-event-id')
  if (last === null || last === '') return query.after ?? 0
  if (/^\d{1,15}$/.test(last)) return Number(last)
  throw new HttpProblem('INVALID_REQUEST', 'Last-Event-ID must be the id of an event of this run.')
}

class RunSource implements Source {
  readonly #call: RunCall
  readonly #reader: ReadableStreamDefaultReader<StoredEvent>
  #run: Run
  #after: number
  #end: RunStatus | null
  #isOver = false
  #isLeft = false

  constructor(call: RunCall, after: number) {
    const { access, run } = call
    this.#call = call
    this.#run = run
    this.#after = after
    this.#end = endOf(run, after)
    this.#reader = access.runs.subscribe(run.id, { after }).getReader()
  }

  async next(): Promise<string | null> {
    if (this.#isOver) return null
    const { value, done } = await this.#reader.read()
    if (!done) return this.#tell(value)
    this.#isOver = true
    if (this.#isLeft) return null
    const status = this.#end ?? (await this.#endAsStored())
    return status === null ? null : `event: done\ndata: ${JSON.stringify({ status })}\n\n`
  }

  leave(): void {
    this.#isLeft = true
    this.#reader.cancel().catch(() => {})
  }

  async isAllowed(): Promise<boolean> {
    const { server, request } = this.#call
    await admitTo(server, { request, action: 'read', run: this.#run })
    return true
  }

  #tell(event: StoredEvent): string {
    this.#after = event.seq
    this.#end = ENDS[event.type] ?? null
    if (event.type === 'run:cancel' && event.requested) this.#end = null
    return `id: ${event.seq}\ndata: ${JSON.stringify(this.#call.server.present.event(event, this.#run))}\n\n`
  }

  /** Not every plugin has every event stored; and a run that was deleted has no end. */
  async #endAsStored(): Promise<RunStatus | null> {
    const { access, run } = this.#call
    const now = await access.runs.getRun(run.id)
    return now === null ? null : endOf(now, this.#after)
  }
}

function endOf({ status, lastEventSequence }: Run, after: number): RunStatus | null {
  return isEnded(status) && lastEventSequence <= after ? status : null
}

const ENDS: Readonly<Partial<Record<StoredEvent['type'], RunStatus>>> = {
  'run:complete': 'completed',
  'run:fail': 'failed',
  'run:timeout': 'timed_out',
  'run:cancel': 'cancelled',
}
