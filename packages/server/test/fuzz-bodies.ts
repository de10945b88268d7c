/** Bodies of requests: mostly such as make sense, and some that no client would send. */
import fc from 'fast-check'
import type { Route } from '../src/route'

export interface SentBody {
  readonly content: string | Uint8Array<ArrayBuffer> | undefined
  readonly type: string | null
  /** Whoever is sent it as JSON has to refuse it. */
  readonly isMalformed: boolean
}

export const odd = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1e3',
    'NaN',
    'null',
    '%00',
    '\u0000',
    '\ud800',
    '__proto__',
    'constructor',
    '🙈',
    'a'.repeat(600),
  ),
)

/** Mostly what makes sense, so that most requests get past the checks. */
export const mostly = <T>(sensible: fc.Arbitrary<T>, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 12, arbitrary: sensible }, { weight: 1, arbitrary: other })

const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, null, { a: 1 }, [], 'text', 0))

const options = fc.record({ delay: json, priority: json, labels: json }, { requiredKeys: [] })
const ofSchedule = { name: mostly(fc.constant('daily'), odd), tenant: mostly(fc.constantFrom('', 'acme'), odd) }
const VALUES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  '/runs': fc.record(
    { jobName: fc.constantFrom('job', 'job', 'strict', 'other', 'durably:bulk', ''), payload: json, options },
    { requiredKeys: ['jobName'] },
  ),
  '/runs/batch': fc.record({
    jobName: fc.constantFrom('job', 'job', 'strict', 'other', 'durably:bulk'),
    runs: fc.array(fc.record({ payload: json, options }, { requiredKeys: [] }), { maxLength: 3 }),
  }),
  '/schedules/pause': fc.record({ ...ofSchedule, because: odd }, { requiredKeys: ['name'] }),
  '/schedules/resume': fc.record(ofSchedule, { requiredKeys: ['name'] }),
  '/schedules/run': fc.record(ofSchedule, { requiredKeys: ['name'] }),
  '/inbox/replay': fc.record(
    { type: mostly(fc.constant('paid'), odd), tenant: odd, from: mostly(fc.constant('2020-01-01'), odd) },
    { requiredKeys: ['type'] },
  ),
  '/runs/:id/signal': fc.record({ name: fc.constant('go'), payload: json, dedupeKey: odd }, { requiredKeys: ['name'] }),
  '/runs/:id/fork': fc.record({ after: mostly(fc.constant('step'), odd), payload: json }, { requiredKeys: [] }),
}
const bulkValue = fc.record({
  action: mostly(fc.constantFrom('cancel', 'retry', 'delete'), odd),
  filter: fc.record(
    { status: mostly<unknown>(fc.constantFrom('failed', ['pending']), json), jobName: odd, tenant: odd },
    { requiredKeys: [] },
  ),
})

function valueOf({ path, body }: Route): fc.Arbitrary<unknown> {
  return body === null ? mostly(fc.constant(undefined), json) : mostly(VALUES[path] ?? bulkValue, json)
}

const ENCODER = new TextEncoder()
const JSON_TYPE = 'application/json'

const bytesOf = (text: string) => ENCODER.encode(text)

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...part]))
}

/** Bytes that are no characters: alone, cut off, too long for what they say, half of a pair, and UTF-16. */
const NO_TEXT = [[0xff], [0x80], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xfe, 0xff, 0x00, 0x7b]]

function withNoText(text: string, at: number): Uint8Array<ArrayBuffer> {
  const [bytes, place] = [bytesOf(text), at % text.length]
  return joined(bytes.subarray(0, place), Uint8Array.from(NO_TEXT[at % NO_TEXT.length] ?? []), bytes.subarray(place))
}

const DEPTHS = [80, 1000, 100_000]

function deep(at: number): string {
  const depth = DEPTHS[at % DEPTHS.length] ?? 0
  const [open, close] = at % 2 === 0 ? ['[', ']'] : ['{"a":', '}']
  return `{"jobName":"job","payload":${open.repeat(depth)}1${close.repeat(depth)}}`
}

/** Of an object's text, with entries behind the others. */
function withLast(entries: string, text: string): string {
  return text === '{}' ? `{${entries}}` : `${text.slice(0, -1)},${entries}}`
}

/** What becomes of the text of an object on its way, at some place of it. */
const MISHAPS: Readonly<Record<string, (text: string, at: number) => SentBody>> = {
  'cut off': (text, at) => malformed(text.slice(0, 1 + (at % (text.length - 1)))),
  'more than one': (text) => malformed(text + text),
  'no text': (text, at) => malformed(withNoText(text, at)),
  'too deep': (_text, at) => malformed(deep(at)),
  'a huge number': (text, at) =>
    malformed(withLast(`"payload":${at % 2 === 0 ? '' : '-'}1e${309 + (at % 1000)}`, text)),
  'of another type': (text, at) => ({ ...malformed(text), type: TYPES[at % TYPES.length] ?? null }),
  // The last one counts, as everywhere.
  'keys twice': (text, at) => ({ ...malformed(withLast(KEYS[at % KEYS.length] ?? '', text)), isMalformed: false }),
  'a mark at its beginning': (text) => ({ ...malformed(joined(bytesOf('\ufeff'), bytesOf(text))), isMalformed: false }),
}

const TYPES = [null, 'text/plain', 'text/json', 'application/x-www-form-urlencoded', 'application/jsonp', 'x', '']
const KEYS = ['"jobName":"strict"', '"name":0,"name":"x"', '"filter":{},"action":"none"', '"payload":0,"payload":{}']

function malformed(content: string | Uint8Array<ArrayBuffer>): SentBody {
  return { content, type: JSON_TYPE, isMalformed: true }
}

function wellFormed(value: unknown): SentBody {
  return value === undefined
    ? { content: undefined, type: null, isMalformed: false }
    : { content: JSON.stringify(value), type: JSON_TYPE, isMalformed: false }
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

export function bodyOf(route: Route): fc.Arbitrary<SentBody> {
  const value = valueOf(route)
  const ruined = fc
    .tuple(value, fc.constantFrom(...Object.keys(MISHAPS)), fc.nat())
    .map(
      ([given, mishap, at]) => MISHAPS[mishap]?.(JSON.stringify(isObject(given) ? given : {}), at) ?? wellFormed(given),
    )
  return fc.oneof({ weight: 5, arbitrary: value.map(wellFormed) }, { weight: 1, arbitrary: ruined })
}
