import type { Children, WaitAllOptions } from '../job'
import type { CtxCall } from './call'
import {
  InvalidOptionError,
  isEnded,
  type Json,
  MAX_VALUE_BYTES,
  NotFoundError,
  type OptionNames,
  PayloadTooLargeError,
  refuseUnknownOptions,
  requireInteger,
  RUN_STATUSES,
  utf8Length,
} from '../base'
import type { RunRecord } from '../port'
import type { StepScope } from './scope'
import { type Found, foundOf, wait, type Waiter } from './wait'

/** How many runs one look is about. */
const IDS_TOGETHER = 500
/** How many that have not ended a look reads, to know that there are as many at least. */
const OPEN_ENOUGH = 16
/** Results are read in few at first: they may be large. */
const FIRST_RESULTS = 32

const OPEN = RUN_STATUSES.filter((status) => !isEnded(status))

/** `ctx.waitAll` */
export function waitForChildren<T>(call: CtxCall, children: Children, options: WaitAllOptions): Promise<T> {
  const { scope, name } = call
  const what = `ctx.waitAll("${name}")`
  const ids = pageOf(what, idsOf(what, children), options)
  const waiter = { runId: scope.run.id, what, madeBy: 'ctx.triggerAll() or ctx.trigger()' }
  const look = new LookAtAll(scope, { ids, waiter })
  return wait(call, {
    kind: 'waitAll',
    due: null,
    async look() {
      const stranger = await look.open()
      if (stranger !== null) return stranger
      return look.isOver ? results(scope, { waiter, ids, asValues: options.failures === 'values' }) : null
    },
    whenDue: () => ({ output: null }),
    awaited: () => ({ ids, open: look.openCount, isOwn: !Array.isArray(children) }),
  })
}

interface LookParams {
  readonly ids: readonly string[]
  readonly waiter: Waiter
}

/** Runs that have ended are not looked at again. */
class LookAtAll {
  readonly #scope: StepScope
  readonly #ids: readonly string[]
  readonly #waiter: Waiter
  #start = 0
  openCount = 0

  constructor(scope: StepScope, { ids, waiter }: LookParams) {
    this.#scope = scope
    this.#ids = ids
    this.#waiter = waiter
  }

  get isOver(): boolean {
    return this.#start >= this.#ids.length
  }

  /** Looks until it finds runs that have not ended; answers with what is wrong when nobody would be woken by their end. */
  async open(): Promise<Found | null> {
    for (; !this.isOver; this.#start += IDS_TOGETHER) {
      const ids = this.#ids.slice(this.#start, this.#start + IDS_TOGETHER)
      const open = await this.#scope.looks.ask((storage) =>
        storage.getRuns({ ids, statuses: OPEN, limit: OPEN_ENOUGH }),
      )
      this.openCount = open.length
      for (const run of open) {
        const stranger = foundOf(run, this.#waiter)
        if (stranger !== null) return stranger
      }
      if (open.length > 0) return null
    }
    return null
  }
}

interface ResultsParams extends LookParams {
  readonly asValues: boolean
}

/** The text of the list of all results. */
async function results(scope: StepScope, { waiter, ids, asValues }: ResultsParams): Promise<Found | null> {
  const texts: string[] = []
  let bytes = 2
  for (let count = FIRST_RESULTS; texts.length < ids.length; count = nextCount(bytes, texts.length)) {
    const some = ids.slice(texts.length, texts.length + count)
    const found = new Map(
      (await scope.looks.ask((storage) => storage.getRuns({ ids: some }))).map((run) => [run.id, run]),
    )
    for (const id of some) {
      const run = found.get(id)
      if (run === undefined) return { error: NotFoundError.run(id) }
      const result = resultOf(run, { waiter, asValues })
      if (result === null || 'error' in result) return result
      texts.push(result.output ?? 'null')
      bytes += utf8Length(result.output ?? 'null', 0) + 1
    }
    if (bytes > MAX_VALUE_BYTES) return { error: tooLarge(waiter.what, bytes) }
  }
  return { output: `[${texts.join(',')}]` }
}

/** As many as are about as large as a value may be. */
function nextCount(bytes: number, read: number): number {
  const bytesEach = bytes / read
  return Math.max(1, Math.min(IDS_TOGETHER, Math.floor(MAX_VALUE_BYTES / bytesEach)))
}

/** `null` when it goes on again. */
function resultOf(run: RunRecord, { waiter, asValues }: Omit<ResultsParams, 'ids'>): Found | null {
  if (!asValues || !isEnded(run.status)) return foundOf(run, waiter)
  const { id, status, output, error } = run
  if (status !== 'completed') return { output: JSON.stringify({ ok: false, id, status, error: error ?? '' }) }
  return { output: `{"ok":true,"id":${JSON.stringify(id)}${outputProperty(output)}}` }
}

/** What a run gave back is text already. */
function outputProperty(output: Json | null): string {
  return output === null ? '' : `,"output":${output}`
}

function tooLarge(what: string, bytes: number): PayloadTooLargeError {
  const list = `The list of results of ${what} (it can be had in parts, each a step of its own: { from, count })`
  return new PayloadTooLargeError(list, bytes, MAX_VALUE_BYTES)
}

function idsOf(what: string, children: Children): readonly string[] {
  const given: unknown = isObject(children) && 'ids' in children ? children.ids : children
  const ids = Array.isArray(given)
    ? given.map((child: unknown) => (isObject(child) && 'id' in child ? child.id : child))
    : []
  if (!Array.isArray(given) || ids.some((id) => typeof id !== 'string')) {
    throw new InvalidOptionError(`${what} needs what ctx.triggerAll returned, or a list of what ctx.trigger returned.`)
  }
  return ids as readonly string[]
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

const WAIT_ALL_OPTIONS: OptionNames<WaitAllOptions> = { failures: true, from: true, count: true }

function pageOf(what: string, ids: readonly string[], options: WaitAllOptions): readonly string[] {
  refuseUnknownOptions(what, options, WAIT_ALL_OPTIONS)
  const { failures = 'throw', from = 0, count = ids.length } = options
  if (failures !== 'throw' && failures !== 'values') {
    throw new InvalidOptionError(`${what}: failures must be 'throw' or 'values', not '${String(failures)}'.`)
  }
  requireInteger(`${what}: from`, from, { from: 0 })
  requireInteger(`${what}: count`, count, { from: 0 })
  return ids.slice(from, from + count)
}
