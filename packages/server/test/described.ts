/** The one place where answers are checked against the OpenAPI document: around a handler, or around `fetch`. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020'
import { createParser } from 'eventsource-parser'
import { expect } from 'vitest'
import { afterEachTest } from '../../../test/leftovers'
import { describeApi } from '../src/openapi'
import { ROUTES } from '../src/routes'

export const DOCUMENT = describeApi(ROUTES, { basePath: '' })

type Answers = (request: Request) => Promise<Response>

/** An answer whose body was read: JSON where it says so. */
export interface Answered {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: its schema was checked.
  readonly json: any
}

/** Of all answers since the last test: who asked may have caught what an error here would be, and asked again. */
const misfits: string[] = []

afterEachTest(expectAllDescribed)

export function expectAllDescribed(): void {
  const taken = takeMisfits()
  expect(taken, taken.join('\n')).toEqual([])
}

export function takeMisfits(): readonly string[] {
  return misfits.splice(0)
}

/** The same answers. One that is not as the document says fails the test that is running, and so does a message of a stream. */
export function described(answer: Answers, basePath = ''): Answers {
  return async (request) => {
    const response = await answer(request)
    const line = lineOf(request)
    if (typeIn(response.headers) === EVENT_STREAM && response.body !== null) return watched(response, line, basePath)
    const answered = { status: response.status, headers: response.headers, json: await jsonOf(response.clone()) }
    misfits.push(...misfitsOf(line, answered, basePath))
    return response
  }
}

function lineOf({ method, url }: Request): string {
  const { pathname, search } = new URL(url)
  return `${method} ${pathname}${search}`
}

export async function jsonOf(response: Response): Promise<unknown> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return isJson && text !== '' ? JSON.parse(text) : text
}

/** The same stream, of which every message is looked at when it is read. */
function watched(response: Response, line: string, basePath: string): Response {
  const content = contentOf(line, response, basePath)
  if (content === null) misfits.push(`${line} is no stream`)
  const decoder = new TextDecoder()
  const parser = createParser({
    onEvent: ({ event = 'message', data }) => {
      const found = content === null ? [] : schemaMisfits([...content.pointer, 'x-messages', event], data)
      misfits.push(...found.map((misfit) => `${line}: ${event} ${misfit}`))
    },
  })
  return new Response(
    tapped(response, (bytes) => parser.feed(decoder.decode(bytes, { stream: true }))),
    response,
  )
}

function tapped({ body }: Response, look: (bytes: Uint8Array) => void) {
  const reader = body?.getReader()
  if (reader === undefined) return null
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const { value, done } = await reader.read()
        if (done) return controller.close()
        look(value)
        controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is read for who does not read.
    { highWaterMark: 0 },
  )
}

const EVENT_STREAM = 'text/event-stream'

interface Operation {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>
}

const PATHS = DOCUMENT['paths'] as Readonly<Record<string, Readonly<Record<string, Operation>>>>

interface Place {
  readonly path: string
  readonly method: string
  /** The address is one of the document. */
  readonly isPath: boolean
  /** Nothing is said of the method at this address. */
  readonly operation: Operation | null
}

function placeOf(line: string, basePath: string): Place {
  const [name = '', address = ''] = line.split(' ')
  const { pathname } = new URL(`http://app.test${address}`)
  const below = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : ''
  const path = Object.hasOwn(PATHS, below) ? below : below.replace(/^(\/runs\/)[^/]+/, '$1{id}')
  const method = (name === 'HEAD' ? 'GET' : name).toLowerCase()
  const operations = Object.hasOwn(PATHS, path) ? PATHS[path] : undefined
  const operation = operations !== undefined && Object.hasOwn(operations, method) ? operations[method] : undefined
  return { path, method, isPath: operations !== undefined, operation: operation ?? null }
}

/** What the document says of an answer of this status and type. */
interface Content {
  readonly type: string
  readonly pointer: readonly string[]
}

function contentOf(line: string, response: Pick<Answered, 'status' | 'headers'>, basePath: string): Content | null {
  const { path, method, operation } = placeOf(line, basePath)
  const key = keyOf(operation, response.status)
  const type = typeIn(response.headers)
  if (type === undefined || operation?.responses[key]?.content?.[type] === undefined) return null
  return { type, pointer: ['paths', path, method, 'responses', key, 'content', type] }
}

function keyOf(operation: Operation | null, status: number): string {
  return operation?.responses[status] === undefined ? 'default' : String(status)
}

function typeIn(headers: Headers): string | undefined {
  return headers.get('content-type')?.split(';')[0]
}

/** Where an answer is not as the document says; what the document does not know must be refused. */
export function misfitsOf(line: string, answered: Answered, basePath = ''): readonly string[] {
  const place = placeOf(line, basePath)
  const found =
    place.operation === null ? refusalMisfits(line, place, answered) : answerMisfits(line, answered, basePath)
  return found.map((misfit) => `${line}: ${answered.status} ${misfit}`)
}

function refusalMisfits(line: string, { isPath }: Place, { status, json }: Answered): readonly string[] {
  if (line.startsWith('OPTIONS ') && isPath) return status === 204 ? [] : ['where 204 was due']
  const [due, code] = isPath ? [405, 'METHOD_NOT_ALLOWED'] : [404, 'NO_SUCH_ROUTE']
  if (status !== due) return [`where ${due} was due`]
  return line.startsWith('HEAD ') || json.code === code ? [] : [`with the code ${json.code}, not ${code}`]
}

function answerMisfits(line: string, answered: Answered, basePath: string): readonly string[] {
  const { operation } = placeOf(line, basePath)
  const type = typeIn(answered.headers)
  const content = contentOf(line, answered, basePath)
  const isNothingDue = operation?.responses[keyOf(operation, answered.status)]?.content === undefined
  if (content === null) return type === undefined && isNothingDue ? [] : [`has the type ${type}`]
  if (!content.type.includes('json') || line.startsWith('HEAD ')) return []
  return schemaMisfits([...content.pointer, 'schema'], JSON.stringify(answered.json))
}

const isInstant = (text: string) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text)
const ajv = new Ajv2020({ strict: false, formats: { 'date-time': isInstant } })
ajv.addSchema({ ...DOCUMENT, $id: 'api' })
const validators = new Map<string, ValidateFunction | null>()

/** `null` where the document has no schema. */
function validatorAt(pointer: readonly string[]): ValidateFunction | null {
  const ref = `api#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`
  const known = validators.get(ref)
  if (known !== undefined) return known
  const isThere = pointer.reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], DOCUMENT)
  const validate = isThere === undefined ? null : ajv.compile({ $ref: ref })
  validators.set(ref, validate)
  return validate
}

function schemaMisfits(pointer: readonly string[], text: string): readonly string[] {
  const validate = validatorAt(pointer)
  if (validate === null) return [`is not in the document: ${text}`]
  return validate(JSON.parse(text)) ? [] : [`${ajv.errorsText(validate.errors)}: ${text}`]
}
