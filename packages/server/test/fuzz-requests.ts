/** Requests of any kind, for every line of the table. */
import fc from 'fast-check'
import { z } from 'zod'
import type { Granted } from '../src'
import type { Route } from '../src/route'
import { ROUTES } from '../src/routes'
import { bodyOf, mostly, odd, type SentBody } from './fuzz-bodies'

export interface FuzzedRequest {
  readonly method: string
  /** That of a route, or any. */
  readonly path: string
  /** Which of the runs there are. */
  readonly which: number
  readonly parameters: readonly (readonly [string, string])[]
  readonly body: SentBody
  readonly headers: Readonly<Record<string, string>>
  readonly user: string
}

const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  status: ['pending', 'failed', 'completed'],
  jobName: ['job', 'other'],
  tenant: ['acme', ''],
  'labels[team]': ['red'],
  createdFrom: ['2020-01-01T00:00:00Z'],
  createdBefore: ['2999-01-01'],
  idPrefix: ['01M7SW6Q'],
  limit: ['1', '7'],
  errorCode: ['E_PAY'],
  waitsFor: ['retry', 'signal', 'time'],
  after: ['0', '3'],
  upTo: ['5'],
  token: ['signed'],
}

function parametersOf({ query }: Route): fc.Arbitrary<[string, string][]> {
  const shape = query instanceof z.ZodObject ? Object.keys(query.shape) : []
  const known = Object.keys(PARAMETERS).filter((name) => shape.includes(name.replace(/\[.*/, '')))
  const name = known.length === 0 ? odd : mostly(fc.constantFrom(...known), odd)
  const parameter = name.chain((each) => {
    const sensible = Object.hasOwn(PARAMETERS, each) ? (PARAMETERS[each] ?? []) : []
    return fc.tuple(fc.constant(each), sensible.length === 0 ? odd : mostly(fc.constantFrom(...sensible), odd))
  })
  const some = fc.array(parameter, { minLength: 1, maxLength: 3 })
  return known.length === 0 ? mostly(fc.constant<[string, string][]>([]), some) : some
}

const headers = fc.record(
  {
    'content-type': fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'x'),
    origin: fc.constantFrom('http://app.test', 'http://other.test', 'null', 'x'),
    'last-event-id': fc.constantFrom('0', '1', '99', 'x', '-1'),
  },
  { requiredKeys: [] },
)

/** Who may ask, where anybody is asked who they are; everybody else is nobody. */
export const USERS: Readonly<Record<string, Granted>> = {
  ops: { actor: 'ops', tenant: null, allow: 'all' },
  ann: { actor: 'ann', tenant: 'acme', allow: 'all' },
  bob: { actor: 'bob', tenant: 'other', allow: 'all' },
  dan: { actor: 'dan', tenant: '', allow: 'all' },
  eve: { actor: 'eve', tenant: 'acme', allow: 'read' },
  cat: { actor: 'cat', tenant: 'acme', allow: ['read', 'trigger', 'cancel'] },
  tim: { tenant: 'other', allow: [] },
}

const user = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('ops', 'ann') },
  { weight: 2, arbitrary: fc.constantFrom('bob', 'dan', 'eve', 'cat') },
  { weight: 1, arbitrary: fc.constantFrom('tim', 'nobody') },
)

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'HEAD', 'OPTIONS']

export const anyRequest: fc.Arbitrary<FuzzedRequest> = fc.constantFrom(...ROUTES).chain((route) =>
  fc.record({
    method: mostly(fc.constant<string>(route.method), fc.constantFrom(...METHODS)),
    path: mostly(fc.constant(route.path), fc.webPath()),
    which: fc.nat(),
    parameters: parametersOf(route),
    body: bodyOf(route),
    headers: mostly(fc.constant({}), headers),
    user,
  }),
)
