import { setTimeout as sleep } from 'node:timers/promises'
import { Clock, repeat, Watch } from './clock.mjs'

const STEPS_OF_A_RUN = 100
const BATCH = 500

function payload(n) {
  return { n, user: 'user 1', text: 'abcdefghij' }
}

function payloads(count) {
  return Array.from({ length: count }, (_, n) => payload(n))
}

function result(n) {
  return { ok: true, n, text: 'abcdefghij' }
}

const noBody = async () => {}
const oneStep = async (_payload, step) => void (await step('only', async () => result(0)))

async function enqueueAll(side, count) {
  for (let left = count; left > 0; left -= BATCH) {
    if (side.enqueueMany) await side.enqueueMany(payloads(Math.min(BATCH, left)))
    else for (const one of payloads(Math.min(BATCH, left))) await side.enqueue(one)
  }
}

async function until(isSo) {
  while (!(await isSo())) await sleep(1)
}

/** Steps a second, one run after another, with everything around them: claiming, finishing, the gaps. */
async function steps(open, { seconds, size }) {
  const clock = new Clock(seconds)
  let left = size
  const body = async (_payload, step) => {
    for (let n = 0; n < STEPS_OF_A_RUN; n++) {
      await step(`step ${n}`, async () => result(n))
      clock.tick()
    }
    left -= 1
    if (left === 0) clock.stop()
  }
  const side = await open({ concurrency: 1, body })
  if (!side.runOne) await enqueueAll(side, size)
  await side.start()
  const rate = side.runOne ? await Promise.race([clock.counted, runForEver(side)]) : await clock.counted
  return { ...rate, durability: await side.durability() }
}

async function runForEver(side) {
  for (let n = 0; ; n++) await side.runOne(payload(n))
}

/** A backlog, from when a fifth is done until the database says that nothing is left. */
function drain(body) {
  return async (open, { size }) => {
    let done = 0
    let watch
    const side = await open({
      body: async (payload, step) => {
        await body(payload, step)
        done += 1
        if (done === size / 5) watch = new Watch()
      },
    })
    await enqueueAll(side, size)
    await side.start()
    await until(() => done >= size)
    await until(async () => (await side.unfinished()) === 0)
    return { ...watch.rateOf((size * 4) / 5), durability: await side.durability() }
  }
}

/** Handed over and executed, by a queue that is at work already. */
async function pour(open, { size }) {
  let done = 0
  const side = await open({
    body: async () => {
      done += 1
    },
  })
  await side.start()
  const all = async (count) => {
    const target = done + count
    const watch = new Watch()
    await side.enqueueMany(payloads(count))
    // Queues that answer when the tasks are done have nothing left to wait for.
    while (done < target) await new Promise(setImmediate)
    if (side.unfinished) await until(async () => (await side.unfinished()) === 0)
    return watch.rateOf(count)
  }
  await all(size / 5)
  return { ...(await all(size)), durability: await side.durability() }
}

async function trigger(open, { seconds }) {
  const side = await open({ concurrency: 1, body: noBody })
  const rate = await repeat(seconds / 2, (n) => side.enqueue(payload(n)))
  return { ...rate, durability: await side.durability() }
}

async function batches(open, { seconds }) {
  const side = await open({ concurrency: 1, body: noBody })
  const { value, cpuMicros } = await repeat(seconds / 2, () => side.enqueueMany(payloads(BATCH)))
  return { value: value * BATCH, cpuMicros: cpuMicros / BATCH, durability: await side.durability() }
}

/** How long it takes to begin when there is nothing else to do: the median of many, in ms. */
async function latency(open, { size }) {
  let begun
  const side = await open({ concurrency: 1, body: async () => begun(performance.now()) })
  await side.start()
  await sleep(1000)
  const waited = []
  for (let n = 0; n < size; n++) {
    // Not in step with anything.
    await sleep(15 + Math.random() * 15)
    const begins = new Promise((resolve) => {
      begun = resolve
    })
    const triggeredAt = performance.now()
    await side.enqueue(payload(n))
    waited.push((await begins) - triggeredAt)
  }
  const sorted = waited.slice(size / 10).sort((a, b) => a - b)
  return { value: sorted[Math.floor(sorted.length / 2)], durability: await side.durability() }
}

/** Leaves a run behind whose process died in the step after `size` finished ones. */
async function fill(open, { size }) {
  const side = await open({ concurrency: 1, isFilling: true, body: runToStep(size, () => process.exit(0)) })
  await side.start()
  await side.enqueue(payload(0))
  await new Promise(() => {})
}

/** From the start of a worker to the first step that is new, for each step before it, in µs. */
async function resume(open, { size }) {
  let reached
  const reaches = new Promise((resolve) => {
    reached = resolve
  })
  const body = runToStep(size, () => {
    reached(performance.now())
    return new Promise(() => {})
  })
  const side = await open({ concurrency: 1, body })
  await side.recover()
  const startedAt = performance.now()
  await side.start()
  return { value: (((await reaches) - startedAt) / size) * 1000, durability: await side.durability() }
}

function runToStep(size, last) {
  return async (_payload, step) => {
    for (let n = 0; n < size; n++) await step(`step ${n}`, async () => result(n))
    await step('the next one', last)
  }
}

const SECOND = '/s'

/** `needs` says what a side is opened as; `more` which of two values is the better one. */
export const WORKS = {
  steps: { needs: 'runs', run: steps, unit: SECOND, isMoreBetter: true, size: 900, quick: 300 },
  runs: { needs: 'runs', run: drain(oneStep), unit: SECOND, isMoreBetter: true, size: 3000, quick: 1000 },
  tasks: { needs: 'tasks', run: drain(noBody), unit: SECOND, isMoreBetter: true, size: 20_000, quick: 5000 },
  memory: { needs: 'tasks', run: pour, unit: SECOND, isMoreBetter: true, size: 50_000, quick: 20_000 },
  trigger: { needs: 'runs', run: trigger, unit: SECOND, isMoreBetter: true },
  batches: { needs: 'runs', run: batches, unit: SECOND, isMoreBetter: true },
  resume: { needs: 'runs', run: resume, before: fill, unit: 'µs a step', isMoreBetter: false, size: 5000, quick: 5000 },
  latency: { needs: 'runs', run: latency, unit: 'ms', isMoreBetter: false, size: 100, quick: 40 },
}
