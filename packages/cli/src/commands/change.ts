import { ConflictError, NotFoundError, type Run, type RunFilter } from '@coji/durably'
import { type Change, fits } from '../changes'
import { findRun } from '../database/find-run'
import { type OpenDatabase, withDatabase } from '../database/open'
import { type CommonOptions, type FilterOptions, toFilter } from '../options'
import { Misuse, Refusal } from '../refusal'
import { tame } from '../terminal/paint'
import type { Terminal } from '../terminal/terminal'
import { count } from '../terminal/words'
import { renderRuns } from './runs'

export interface ChangeOptions extends CommonOptions, FilterOptions {
  readonly all?: boolean
  readonly yes?: boolean
  readonly dryRun?: boolean
}

interface Asked {
  readonly change: Change
  readonly id: string | undefined
  readonly options: ChangeOptions
}

/** `durably retry`, `durably cancel`, `durably unpark`: one run by its id, or those that a filter finds. */
export async function changeRuns({ change, id, options }: Asked, terminal: Terminal): Promise<void> {
  const filter = toFilter(options)
  const hasFilter = Object.keys(filter).length > 0
  if (id !== undefined && (hasFilter || options.all === true)) {
    throw new Misuse(`Give durably ${change.name} either the id of a run or a filter, not both.`)
  }
  if (id === undefined && !hasFilter && options.all !== true) {
    throw new Misuse(`Which runs? Give the id of one, a filter such as --job, or --all.`)
  }
  await withDatabase(options, { writes: options.dryRun !== true }, (database) =>
    id === undefined
      ? changeMany(database, { change, filter, options }, terminal)
      : changeOne(database, { change, id, options }, terminal),
  )
}

async function changeOne(
  database: OpenDatabase,
  { change, id, options }: Asked & { readonly id: string },
  terminal: Terminal,
): Promise<void> {
  const found = await findRun(database, id)
  if (!fits(change, found)) throw inWrongState(change, found)
  if (options.dryRun === true) return tellPlan([found], 1, { change, options, terminal })
  const run = await apply(database, change, found.id)
  if (run === null) throw inWrongState(change, await findRun(database, found.id))
  if (options.json === true) terminal.printJson({ done: [run.id], skipped: [] })
  else terminal.print(`Run ${run.id} of ${tame(run.jobName)} ${change.after(run)}`)
}

function inWrongState({ name, fitting }: Change, { id, status }: Run): Refusal {
  return new Refusal(`Run ${id} is ${status}. durably ${name} takes a run that is ${fitting}.`)
}

interface Many extends Pick<Asked, 'change' | 'options'> {
  readonly filter: RunFilter
}

const PAGE = 200
const SHOWN = 10

async function changeMany(database: OpenDatabase, many: Many, terminal: Terminal): Promise<void> {
  const { change, options } = many
  const { statuses, waitsFor } = change
  const filter = { status: statuses, ...(waitsFor !== undefined && { waitsFor }), ...many.filter }
  const counts = await database.durably.counts(filter)
  const total = statuses.reduce((sum, status) => sum + counts[status], 0)
  const first = await database.durably.getRuns({ ...filter, limit: SHOWN })
  if (options.dryRun === true) return tellPlan(first, total, { change, options, terminal })
  if (total > 0 && options.yes !== true) {
    terminal.note(planOf(first, total, terminal))
    if (!(await isWanted(change, total, terminal))) throw new Refusal('Nothing was done.')
  }
  const { done, skipped } = await changeEach(database, { change, filter }, terminal)
  if (options.json === true) terminal.printJson({ done, skipped })
  else terminal.print(summaryOf(change, done, skipped))
}

async function isWanted({ name }: Change, total: number, terminal: Terminal): Promise<boolean> {
  const wanted = await terminal.confirm(`${name.charAt(0).toUpperCase()}${name.slice(1)} ${count(total, 'run')}?`)
  if (wanted === null) throw new Misuse('Nobody is there to be asked. Say --yes, or look first with --dry-run.')
  return wanted
}

/** From the newest to the oldest that was there at the beginning: what is done goes behind, what comes is not seen. */
async function changeEach(
  { durably }: OpenDatabase,
  { change, filter }: Pick<Many, 'change' | 'filter'>,
  { signal }: Terminal,
) {
  const [done, skipped]: [string[], string[]] = [[], []]
  let cursor: Run | undefined
  for (;;) {
    const page = await durably.getRuns({
      ...filter,
      limit: PAGE,
      ...(cursor !== undefined && { cursor: placeOf(cursor) }),
    })
    for (const { id } of page) {
      signal.throwIfAborted()
      const run = await apply({ durably }, change, id)
      if (run === null) skipped.push(id)
      else done.push(id)
    }
    cursor = page.at(-1)
    if (page.length < PAGE) return { done, skipped }
  }
}

function placeOf({ createdAt, id }: Run) {
  return { createdAt, id }
}

/** `null`: somebody was quicker. */
async function apply({ durably }: Pick<OpenDatabase, 'durably'>, { call }: Change, id: string): Promise<Run | null> {
  try {
    return await durably[call](id)
  } catch (error) {
    if (error instanceof ConflictError || error instanceof NotFoundError) return null
    throw error
  }
}

interface PlanParams extends Pick<Asked, 'change' | 'options'> {
  readonly terminal: Terminal
}

function tellPlan(first: readonly Run[], total: number, { change, options, terminal }: PlanParams): void {
  if (options.json === true) {
    terminal.printJson({ would: change.name, runs: total, first: first.map(({ id }) => id) })
    return
  }
  if (total > 0) terminal.print(planOf(first, total, terminal))
  terminal.print(`Would ${change.name} ${count(total, 'run')}. Nothing was done.`)
}

function planOf(first: readonly Run[], total: number, terminal: Terminal): string {
  const more = total - first.length
  return `${renderRuns(first, terminal)}${more > 0 ? `\n… and ${more} more` : ''}`
}

function summaryOf({ name, afterMany }: Change, done: readonly string[], skipped: readonly string[]): string {
  if (done.length + skipped.length === 0) return `There is no run to ${name}.`
  const left =
    skipped.length === 0 ? '' : ` ${count(skipped.length, 'run')} had changed meanwhile and stayed as they are.`
  return `${count(done.length, 'run')} ${afterMany(done.length === 1)}${left}`
}
