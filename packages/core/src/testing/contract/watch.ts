import type { Hint } from '../../port'
import { assert, assertEqual } from '../assert'
import { newId, stepWrite } from './builders'
import { casesOf } from './contract-case'
import type { Kit } from './kit'

/** A hint may come a little after the write; some reads give it the time, without a clock. */
const READS = 200

interface Wanted {
  readonly hint: Hint
  readonly after: string
}

export async function assertHinted(kit: Kit, hints: readonly Hint[], { hint, after }: Wanted): Promise<void> {
  const isThere = () => hints.some((one) => JSON.stringify(one) === JSON.stringify(hint))
  for (let read = 0; read < READS && !isThere(); read++) await kit.storage.getRun(newId())
  assert(isThere(), `watch: no hint ${JSON.stringify(hint)} after ${after}, only ${JSON.stringify(hints)}`)
}

export const WATCH_CASES = casesOf('watch', 'watch', {
  'a new run is a hint that runs are due': async (kit) => {
    const hints: Hint[] = []
    const stop = kit.watch.subscribe((hint) => hints.push(hint))
    await kit.enqueue()
    await assertHinted(kit, hints, { hint: { kind: 'runs' }, after: 'enqueue' })
    stop()
  },

  'a change to a run is a hint': async (kit) => {
    const holder = await kit.start()
    const hints: Hint[] = []
    const stop = kit.watch.subscribe((hint) => hints.push(hint))
    await holder.commit({ steps: [stepWrite()] })
    await assertHinted(kit, hints, { hint: { kind: 'run', runId: holder.id }, after: 'commit' })
    hints.length = 0
    await kit.order('cancel', holder.id)
    await assertHinted(kit, hints, { hint: { kind: 'run', runId: holder.id }, after: 'cancel' })
    stop()
  },

  'a wish to cancel a running run is a hint of its own, and the end of a waiting one is none': async (kit) => {
    const holder = await kit.start()
    const waiting = await kit.enqueue({ start: { afterMs: 3_600_000 } })
    const hints: Hint[] = []
    const stop = kit.watch.subscribe((hint) => hints.push(hint))
    await kit.order('cancel', waiting.id)
    await kit.order('cancel', holder.id)
    await assertHinted(kit, hints, { hint: { kind: 'cancel', runId: holder.id }, after: 'cancel' })
    const others = hints.filter(({ kind, ...hint }) => kind === 'cancel' && 'runId' in hint && hint.runId !== holder.id)
    assertEqual(others, [], 'hints of cancels')
    stop()
  },

  'a run put back is a hint that runs are due': async (kit) => {
    const holder = await kit.start()
    const hints: Hint[] = []
    const stop = kit.watch.subscribe((hint) => hints.push(hint))
    await holder.leave('release')
    await assertHinted(kit, hints, { hint: { kind: 'runs' }, after: 'release' })
    stop()
  },

  'whoever has unsubscribed gets nothing, others go on': async (kit) => {
    const [gone, staying]: [Hint[], Hint[]] = [[], []]
    const stopGone = kit.watch.subscribe((hint) => gone.push(hint))
    const stopStaying = kit.watch.subscribe((hint) => staying.push(hint))
    stopGone()
    await kit.enqueue()
    await assertHinted(kit, staying, { hint: { kind: 'runs' }, after: 'enqueue' })
    assertEqual(gone, [], 'hints after the end of the subscription')
    stopStaying()
  },

  'a listener that fails, at once or later, disturbs neither the write nor other listeners': async (kit) => {
    const hints: Hint[] = []
    const stopBroken = kit.watch.subscribe(() => {
      throw new Error('a broken listener')
    })
    const stopRejecting = kit.watch.subscribe(() => Promise.reject(new Error('a listener that rejects')))
    const stop = kit.watch.subscribe((hint) => hints.push(hint))
    const run = await kit.enqueue()
    assertEqual(await kit.run(run.id), run, 'the run')
    await assertHinted(kit, hints, { hint: { kind: 'runs' }, after: 'enqueue' })
    stopBroken()
    stopRejecting()
    stop()
  },
})
