import { casesFor } from '@coji/durably-core/testing'
import { contractSetup } from '../../../../storage-kysely/test-browser/contract-setup'
import { recycling } from '../../../../storage-kysely/test/recycle'
import { createDurably, type StandardSchema } from '../../../src/index'
import { withTabLeader } from '../../../src/plugins'
import { sqlocal } from '../../../src/sqlocal'

const TAB = crypto.randomUUID()
/** Where those of a file say what they begin. */
const witnessOf = (file: string) => `witness of ${file} `

interface Work {
  readonly steps: number
  readonly ms: number
}

function open(file: string) {
  const durably = createDurably({ dialect: sqlocal(file), logger: null, concurrency: 4 })
  durably.use(withTabLeader({ name: file }))
  const troubles: string[] = []
  durably.on('worker:error', ({ during, code }) => troubles.push(`${during}: ${code}`))
  const input: StandardSchema<Work> = {
    '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as Work }) },
  }
  const work = durably.defineJob({ name: 'work', input }, async (ctx, { steps, ms }) => {
    for (let n = 1; n <= steps; n++) {
      await ctx.run(`step ${n}`, async () => {
        // Outside of the database, which cannot testify for itself.
        localStorage.setItem(`${witnessOf(file)}${crypto.randomUUID()}`, `${ctx.runId} ${n}`)
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
        return TAB
      })
    }
    return steps
  })
  return { file, durably, work, troubles }
}

let opened: ReturnType<typeof open> | null = null

function app() {
  if (opened === null) throw new Error('open first')
  return opened
}

const { cases } = casesFor([
  'events',
  'logs',
  'signals',
  'transaction',
  'watch',
  'limits',
  'archiving',
  'audit',
  'settings',
  'cluster',
])
const setup = recycling(contractSetup().open)

const api = {
  tab: TAB,
  async open(file: string) {
    opened = open(file)
    await opened.durably.migrate()
    opened.durably.start()
  },
  async trigger(work: Work) {
    return (await app().work.trigger(work)).id
  },
  async run(work: Work) {
    return (await app().work.triggerAndWait(work)).output
  },
  worker: () => app().durably.health().worker,
  troubles: () => app().troubles,
  close: () => app().durably.close(),
  async runs() {
    const runs = await app().durably.getRuns()
    return runs.map(({ id, status, crashCount }) => ({ id, status, crashCount }))
  },
  /** The tab that recorded each step of a run. */
  async recordedBy(id: string) {
    return (await app().durably.getSteps(id)).map(({ output }) => output as string)
  },
  /** Each body that began on this file, in any tab and at any time. */
  witness: () =>
    Object.keys(localStorage)
      .filter((key) => key.startsWith(witnessOf(app().file)))
      .map((key) => localStorage.getItem(key) ?? ''),
  /** What is wrong with these cases of the storage contract. */
  async runCases(names: readonly string[]) {
    const failures: string[] = []
    const run = async ({ name, run: check }: (typeof cases)[number]) => {
      try {
        await check(setup)
      } catch (error) {
        failures.push(`${name}: ${String(error)}`)
      }
    }
    const wanted = cases.filter(({ name }) => names.includes(name))
    if (wanted.length !== names.length) failures.push(`${names.length - wanted.length} cases are not known here`)
    await Promise.all(wanted.map(run))
    return failures
  },
  endCases: () => setup.end(),
}

declare global {
  interface Window {
    readonly inFirefox: typeof api
  }
}

Object.assign(window, { inFirefox: api })
