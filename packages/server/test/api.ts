import {
  type Cluster,
  createCluster,
  createInbox,
  createScheduler,
  type Inbox,
  type Scheduler,
} from '@coji/durably-cluster'
import { createDurably, type Durably, type Storage } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020'
import { expect, onTestFinished } from 'vitest'
import { createDurablyHandler, type DurablyHandler, type HandlerOptions } from '../src'
import { describeApi } from '../src/openapi'
import { ROUTES } from '../src/routes'

export const DOCUMENT = describeApi(ROUTES, { basePath: '' })

export interface Asked {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: its schema was checked.
  readonly json: any
}

export interface Api {
  readonly durably: Durably
  readonly handler: DurablyHandler
  readonly cluster: Cluster
  readonly schedules: Scheduler
  readonly inbox: Inbox
  /** Every answer is checked against the OpenAPI document. */
  ask(line: string, asked?: Asked): Promise<Answered>
}

export interface ApiOptions extends HandlerOptions {
  readonly storage?: Storage
  readonly history?: boolean
}

/** An instance on a storage in memory and the handler on it. */
export function openApi({ storage = createMemoryStorage(), history = true, ...options }: ApiOptions = {}): Api {
  const durably = createDurably({ storage, logger: null })
  if (history) durably.use(withLogPersistence())
  onTestFinished(() => durably.close())
  const access = options.authorize === undefined ? { allowAnonymous: true as const } : {}
  const served = {
    cluster: createCluster(durably, { version: 'v1', labels: { zone: 'a' } }),
    ...{ schedules: createScheduler(durably), inbox: createInbox(durably) },
  }
  const handler = createDurablyHandler(durably, { ...access, ...served, ...options })
  return {
    durably,
    handler,
    ...served,
    ask: (line, asked) => ask({ handler, basePath: options.basePath }, line, asked),
  }
}

export const ORIGIN = 'http://app.test'

export function toRequest(line: string, { body, headers = {} }: Asked = {}): Request {
  const [method = 'GET', path = '/'] = line.split(' ')
  const content = body === undefined ? {} : { 'content-type': 'application/json' }
  return new Request(`${ORIGIN}${path}`, {
    method,
    headers: { ...content, ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

interface Mounted {
  readonly handler: DurablyHandler
  readonly basePath: string | undefined
}

async function ask({ handler, basePath }: Mounted, line: string, asked?: Asked): Promise<Answered> {
  const response = await handler(toRequest(line, asked))
  const { status, headers } = response
  // Hints have no end.
  const isEndless = line.startsWith('GET /events') && status === 200
  if (isEndless) await response.body?.cancel()
  const text = isEndless ? '' : await response.text()
  const isJson = headers.get('content-type')?.includes('json') === true
  const json: unknown = isJson && text !== '' ? JSON.parse(text) : text
  expectDescribed(line, { status, headers, json }, basePath)
  return { status, headers, json }
}

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ ...DOCUMENT, $id: 'api' })
const validators = new Map<string, ValidateFunction>()

type Paths = Readonly<Record<string, Record<string, { responses: Record<string, { content?: object }> }>>>
const PATHS = DOCUMENT['paths'] as Paths

function describedPath(address: string, basePath: string): string {
  const { pathname } = new URL(`${ORIGIN}${address}`)
  const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : ''
  return Object.hasOwn(PATHS, path) ? path : path.replace(/^(\/runs\/)[^/]+/, '$1{id}')
}

/** What is not described is not served. */
function expectRefused(line: string, { status, json }: Answered, isPath: boolean): void {
  const isOptions = line.startsWith('OPTIONS ') && isPath
  expect(status, line).toBe(isOptions ? 204 : isPath ? 405 : 404)
  if (!isOptions && !line.startsWith('HEAD '))
    expect(json.code, line).toBe(isPath ? 'METHOD_NOT_ALLOWED' : 'NO_SUCH_ROUTE')
}

/** What the document says of an operation holds for what was answered. */
export function expectDescribed(line: string, answered: Answered, basePath = ''): void {
  const [name = '', address = ''] = line.split(' ')
  const path = describedPath(address, basePath)
  const method = name === 'HEAD' ? 'GET' : name
  const operation = Object.hasOwn(PATHS, path) ? PATHS[path]?.[method.toLowerCase()] : undefined
  if (operation === undefined) {
    expectRefused(line, answered, Object.hasOwn(PATHS, path))
    return
  }
  const { status, headers, json } = answered
  const key = operation.responses[status] === undefined ? 'default' : String(status)
  const type = headers.get('content-type')?.split(';')[0]
  const types = Object.keys(operation.responses[key]?.content ?? {})
  expect(type === undefined ? types.length === 0 : types.includes(type), `${line}: ${status} ${type}`).toBe(true)
  if (type?.includes('json') !== true || name === 'HEAD') return
  const pointer = [path, method.toLowerCase(), 'responses', key, 'content', type, 'schema']
  const ref = `api#/paths/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`
  const validate = validators.get(ref) ?? ajv.compile({ $ref: ref })
  validators.set(ref, validate)
  expect(validate(json) ? [] : validate.errors, `${line}: ${status} ${JSON.stringify(json)}`).toEqual([])
}
