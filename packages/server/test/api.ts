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
  return { durably, handler, ...served, ask: (line, asked) => ask(handler, line, asked) }
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

async function ask(handler: DurablyHandler, line: string, asked?: Asked): Promise<Answered> {
  const response = await handler(toRequest(line, asked))
  const { status, headers } = response
  // Hints have no end.
  const isEndless = line.startsWith('GET /events') && status === 200
  if (isEndless) await response.body?.cancel()
  const text = isEndless ? '' : await response.text()
  const isJson = headers.get('content-type')?.includes('json') === true
  const json: unknown = isJson && text !== '' ? JSON.parse(text) : text
  expectDescribed(line, { status, headers, json })
  return { status, headers, json }
}

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ ...DOCUMENT, $id: 'api' })
const validators = new Map<string, ValidateFunction>()

/** What the document says of an operation holds for what was answered. */
export function expectDescribed(line: string, { status, headers, json }: Answered): void {
  const [method = '', address = ''] = line.split(' ')
  const path = address.replace(/\?.*/, '').replace(/^(\/runs\/)[^/]+/, '$1{id}')
  const paths = DOCUMENT['paths'] as Record<string, Record<string, { responses: Record<string, { content?: object }> }>>
  const operation = paths[path]?.[method.toLowerCase()]
  const key = operation?.responses[status] === undefined ? 'default' : String(status)
  const type = headers.get('content-type')?.split(';')[0]
  if (operation === undefined) return
  const types = Object.keys(operation.responses[key]?.content ?? {})
  expect(type === undefined ? types.length === 0 : types.includes(type), `${line}: ${status} ${type}`).toBe(true)
  if (type?.includes('json') !== true) return
  const pointer = [path, method.toLowerCase(), 'responses', key, 'content', type, 'schema']
  const ref = `api#/paths/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`
  const validate = validators.get(ref) ?? ajv.compile({ $ref: ref })
  validators.set(ref, validate)
  expect(validate(json) ? [] : validate.errors, `${line}: ${status} ${JSON.stringify(json)}`).toEqual([])
}
