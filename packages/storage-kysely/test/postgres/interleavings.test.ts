import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from 'kysely'
import { FENCES } from '../../src/statement/fences'
import { scaled } from '../../../../test/scale'
import { OPERATIONS } from './operations'
import { type Case, casesOf, openStage, type Stage } from './stage'
import { FAMILIES, type State, STATES } from './worlds'

const ALWAYS = () => sql`true`

const NAMES = Object.keys(OPERATIONS)
const PAIRS = NAMES.flatMap((one, index) => NAMES.slice(index).map((other) => [one, other]))

const ENDINGS = ['child complete', 'child fail', 'child recover', 'child cancel']
const MEANWHILE = [
  'step',
  'trigger',
  'transaction',
  'suspend',
  'complete',
  'release',
  'renew',
  'renew both',
  'cancel',
  'signal',
]
const FAMILY_PAIRS = [
  ...ENDINGS.flatMap((ending) => MEANWHILE.map((other) => [ending, other])),
  ...['renew both', 'recover', 'child cancel', 'child signal', 'signal', 'cancel'].map((other) => ['together', other]),
]

const TRIPLES: readonly (readonly [State, readonly string[]])[] = [
  ['running', ['step', 'recover', 'claim']],
  ['running', ['complete', 'recover', 'cancel']],
  ['failed', ['retry', 'retry', 'claim']],
]

const PATIENCE = { timeout: 300_000 }

/** Every pair, every triple, in every order, in every state; the quick lane takes some of each. */
describe.each([
  ['read committed', 1, ['23505']],
  ['repeatable read', 6, ['23505', '40001']],
  ['serializable', 6, ['23505', '40001']],
] as const)('sessions on a database whose default is %s', (isolation, part, harmless) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage({ isolation })
  })
  afterAll(() => stage.close())

  async function expectNothingWrong(all: readonly Case[], state: State, quick: number): Promise<void> {
    const every = scaled({ quick: 2 * quick * part + 1, full: 1 })
    const cases = all.filter((_, index) => index % every === 0)
    const { wrong, errors } = await stage.play(cases, state)
    expect(wrong.slice(0, 5)).toEqual([])
    expect(errors.filter((code) => !(harmless as readonly string[]).includes(code))).toEqual([])
  }

  it.each(STATES)('two on a run that is %s', PATIENCE, async (state) => {
    await expectNothingWrong(casesOf(PAIRS), state, state === 'running' ? 8 : 16)
  })

  it.each(FAMILIES)('two on a parent and its child, %s', PATIENCE, async (state) => {
    await expectNothingWrong(casesOf(FAMILY_PAIRS), state, 8)
  })

  it.each(TRIPLES)('three on a run that is %s: %s', PATIENCE, async (state, operations) => {
    await expectNothingWrong(casesOf([operations]), state, 2)
  })
})

interface Mutant {
  readonly session: Pick<Parameters<typeof openStage>[0], 'mutate' | 'fences'>
  /** Who meets it. */
  readonly state: State
  readonly operations: readonly (readonly string[])[]
}

const MUTANTS: Readonly<Record<string, Mutant>> = {
  'do not lock the rows of a list first': {
    session: { mutate: (text) => (/^with locked/.test(text) ? text.replaceAll('for update)', ')') : text) },
    state: 'running',
    operations: [
      ['trigger', 'cancel'],
      ['recover', 'signal'],
    ],
  },
  'commit many without locking them first': {
    session: { mutate: (text) => (/^with c as/.test(text) ? text.replaceAll('for update)', ')') : text) },
    state: 'running',
    operations: [
      ['step', 'recover'],
      ['complete', 'cancel'],
    ],
  },
  'ask for no epoch and no token': {
    session: { fences: { ...FENCES, 'lease.epoch': ALWAYS, 'lease.token': ALWAYS } },
    state: 'taken over',
    operations: [
      ['step', 'signal'],
      ['renew', 'cancel'],
    ],
  },
  'forget what they saw': {
    session: { fences: { ...FENCES, 'recover.unchanged': ALWAYS } },
    state: 'running',
    operations: [['recover', 'cancel']],
  },
  'wake no parent': {
    session: { mutate: (text) => text.replaceAll('finished_at is null', 'finished_at is not null') },
    state: 'parent first',
    operations: [['child complete', 'renew']],
  },
}

/** Each of them must be found, or nothing that is said above is worth anything. */
it.each(Object.entries(MUTANTS))('finds sessions that %s', PATIENCE, async (_name, mutant) => {
  const stage = await openStage({ isolation: 'read committed', ...mutant.session })
  const { wrong } = await stage.play(casesOf(mutant.operations), mutant.state)
  await stage.close()
  expect(wrong).not.toEqual([])
})
