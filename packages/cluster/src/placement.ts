import type { Waiting, WaitingRun, WorkerRecord } from '@coji/durably-core/storage'

/** Which worker gets which run. */
export interface Place {
  readonly run: WaitingRun
  readonly workerId: string
}

/** Of tenants with as many runs in hand the one that was served longest ago comes first: with one place all have none. */
export class Turns {
  readonly #served = new Map<string, number>()
  #turn = 0

  note(tenant: string): void {
    if (this.#served.size === MOST_TENANTS) this.#served.clear()
    this.#turn += 1
    this.#served.set(tenant, this.#turn)
  }

  of(tenant: string): number {
    return this.#served.get(tenant) ?? 0
  }
}

const MOST_TENANTS = 10_000

interface Host {
  readonly workerId: string
  readonly jobs: ReadonlySet<string>
  free: number
  takesSuspect: boolean
}

interface Tenant {
  readonly name: string
  held: number
  readonly runs: WaitingRun[]
}

/** Workers that can take more, with the jobs that they take. */
export function withRoom(workers: readonly WorkerRecord[]): readonly WorkerRecord[] {
  return workers.filter(({ isAlive, presence, capacity, running, assigned, placedJobs }) => {
    return isAlive && presence === 'active' && placedJobs.length > 0 && capacity > running + assigned
  })
}

/**
 * Of the tenants that wait the one with the fewest runs in hand comes next, and of its runs the first that somebody can
 * take: the worker that has the most room.
 */
export function choosePlaces(
  workers: readonly WorkerRecord[],
  { runs, loads }: Pick<Waiting, 'runs' | 'loads'>,
  turns: Turns,
): readonly Place[] {
  const hosts = withRoom(workers).map(toHost)
  const tenants = tenantsOf(runs, loads)
  const takenOfKeys = new Map<string, number>()
  const places: Place[] = []
  while (tenants.length > 0) {
    const tenant = tenants.reduce((first, other) => (comesBefore(turns, other, first) ? other : first))
    const place = nextPlace(tenant, hosts, takenOfKeys)
    if (place === null) {
      tenants.splice(tenants.indexOf(tenant), 1)
      continue
    }
    tenant.held += 1
    turns.note(tenant.name)
    places.push(place)
  }
  return places
}

/** Takes the run out of those that wait. `null`: nobody can take any of them. */
function nextPlace(tenant: Tenant, hosts: readonly Host[], takenOfKeys: Map<string, number>): Place | null {
  for (;;) {
    const run = tenant.runs.shift()
    if (run === undefined) return null
    const key = run.concurrencyKey === null ? null : JSON.stringify([run.tenant, run.concurrencyKey])
    const taken = key === null ? 0 : (takenOfKeys.get(key) ?? 0)
    const host = taken < run.roomOfKey ? roomiest(hosts, run) : null
    if (host === null) continue
    if (key !== null) takenOfKeys.set(key, taken + 1)
    host.free -= 1
    if (run.isSuspect) host.takesSuspect = false
    return { run, workerId: host.workerId }
  }
}

function roomiest(hosts: readonly Host[], { jobName, isSuspect }: WaitingRun): Host | null {
  let best: Host | null = null
  for (const host of hosts) {
    const takesIt = host.free > 0 && host.jobs.has(jobName) && (!isSuspect || host.takesSuspect)
    if (takesIt && (best === null || host.free > best.free)) best = host
  }
  return best
}

function toHost({ workerId, placedJobs, capacity, running, assigned, holdsSuspect }: WorkerRecord): Host {
  return { workerId, jobs: new Set(placedJobs), free: capacity - running - assigned, takesSuspect: !holdsSuspect }
}

function tenantsOf(runs: readonly WaitingRun[], loads: Waiting['loads']): Tenant[] {
  const held = new Map(loads.map((load) => [load.tenant, load.held]))
  const tenants = new Map<string, Tenant>()
  for (const run of [...runs].sort(inOrder)) {
    const { tenant: name } = run
    const tenant = tenants.get(name) ?? { name, held: held.get(name) ?? 0, runs: [] }
    tenants.set(name, tenant)
    tenant.runs.push(run)
  }
  return [...tenants.values()]
}

function comesBefore(turns: Turns, a: Tenant, b: Tenant): boolean {
  if (a.held !== b.held) return a.held < b.held
  if (turns.of(a.name) !== turns.of(b.name)) return turns.of(a.name) < turns.of(b.name)
  const [first, second] = [a.runs[0], b.runs[0]]
  return first !== undefined && second !== undefined && inOrder(first, second) < 0
}

function inOrder(a: WaitingRun, b: WaitingRun): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.availableAt !== b.availableAt) return a.availableAt < b.availableAt ? -1 : 1
  return a.runId < b.runId ? -1 : Number(a.runId > b.runId)
}
