import type { Random } from './random'

/** Who a thing that will happen belongs to: it does not happen to the dead, and waits for the paused. */
export interface Actor {
  state: 'alive' | 'paused' | 'gone'
  /** What came due while it was paused. */
  readonly held: Happening[]
}

export interface Happening {
  at: number
  chance: number
  readonly actor: Actor | null
  fn: (() => void | Promise<void>) | null
}

/** Virtual time: nothing happens but what is in the queue, one thing after another. */
export interface World {
  readonly random: Random
  /** Milliseconds since the beginning. */
  now(): number
  /** As `schedule`, before anything else that is due at that moment, also after a pause. */
  scheduleFirst(ms: number, actor: Actor, fn: () => void): void
  /** Returns how to call it off. */
  schedule(ms: number, actor: Actor | null, fn: () => void | Promise<void>): () => void
  /** What a paused actor missed happens to it now, in any order. */
  release(actor: Actor): void
  /** Lets the next thing happen, and everything that follows from it without time passing; false when nothing is left. */
  step(): Promise<boolean>
  close(): void
}

/** Before every chance there is. */
const FIRST = -1

export function createWorld(random: Random): World {
  const queue: Happening[] = []
  const turns = createTurns()
  let now = 0

  function push(happening: Happening): void {
    let child = queue.push(happening) - 1
    while (child > 0) {
      const parent = (child - 1) >> 1
      const above = queue[parent]
      if (above === undefined || !isBefore(happening, above)) break
      queue[child] = above
      child = parent
    }
    queue[child] = happening
  }

  function pop(): Happening | undefined {
    const first = queue[0]
    const last = queue.pop()
    if (last !== undefined && queue.length > 0) sink(queue, last)
    return first
  }

  function schedule(ms: number, actor: Actor | null, fn: () => void | Promise<void>): () => void {
    const happening: Happening = { at: now + Math.max(0, ms), chance: random.next(), actor, fn }
    push(happening)
    return () => {
      happening.fn = null
    }
  }

  return {
    random,
    now: () => now,
    schedule,
    scheduleFirst: (ms, actor, fn) => push({ at: now + ms, chance: FIRST, actor, fn }),
    release(actor) {
      for (const happening of actor.held.splice(0)) {
        const chance = random.next()
        push(Object.assign(happening, { at: now, chance: happening.chance === FIRST ? FIRST : chance }))
      }
    },
    async step() {
      for (let next = pop(); next !== undefined; next = pop()) {
        const { actor, fn } = next
        if (fn === null || actor?.state === 'gone') continue
        if (actor?.state === 'paused') {
          actor.held.push(next)
          continue
        }
        now = Math.max(now, next.at)
        await fn()
        await turns.settled()
        return true
      }
      return false
    },
    close: () => turns.close(),
  }
}

function isBefore(a: Happening, b: Happening): boolean {
  return a.at < b.at || (a.at === b.at && a.chance < b.chance)
}

function sink(queue: Happening[], happening: Happening): void {
  let parent = 0
  for (;;) {
    const left = 2 * parent + 1
    const a = queue[left]
    const b = queue[left + 1]
    if (a === undefined) break
    const child = b !== undefined && isBefore(b, a) ? b : a
    if (!isBefore(child, happening)) break
    queue[parent] = child
    parent = child === a ? left : left + 1
  }
  queue[parent] = happening
}

/** One channel for the whole simulation: when its message arrives, all promises that could settle have settled. */
function createTurns() {
  const { port1, port2 } = new MessageChannel()
  let resolve: () => void = () => {}
  port1.onmessage = () => resolve()
  return {
    settled: () =>
      new Promise<void>((done) => {
        resolve = done
        port2.postMessage(null)
      }),
    close: () => port1.close(),
  }
}
