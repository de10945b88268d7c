import {
  type Cluster,
  createCluster,
  createInbox,
  createScheduler,
  type Inbox,
  type Scheduler,
} from '@coji/durably-cluster'
import { createDurably, type Durably, type Environment, type Storage } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { withLogPersistence } from '@coji/durably-plugins'
import { onTestFinished } from 'vitest'
import { createDurablyHandler, type DurablyHandler, type HandlerOptions } from '../src'
import { type Answered, described, expectAllDescribed, jsonOf } from './described'

export interface Asked {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Api {
  readonly durably: Durably
  readonly handler: DurablyHandler
  readonly cluster: Cluster
  readonly schedules: Scheduler
  readonly inbox: Inbox
  ask(line: string, asked?: Asked): Promise<Answered>
}

export interface ApiOptions extends HandlerOptions {
  readonly storage?: Storage
  readonly history?: boolean
  readonly environment?: Partial<Environment>
}

/** An instance on a storage in memory and the handler on it, of which every answer is checked against the OpenAPI document. */
export function openApi({
  storage = createMemoryStorage(),
  history = true,
  environment = {},
  ...options
}: ApiOptions = {}): Api {
  const durably = createDurably({ storage, logger: null, environment })
  if (history) durably.use(withLogPersistence())
  onTestFinished(() => durably.close())
  const access = options.authorize === undefined ? { allowAnonymous: true as const } : {}
  const served = {
    cluster: createCluster(durably, { version: 'v1', labels: { zone: 'a' } }),
    ...{ schedules: createScheduler(durably), inbox: createInbox(durably) },
  }
  const handler = described(createDurablyHandler(durably, { ...access, ...served, ...options }), options.basePath)
  return {
    durably,
    handler,
    ...served,
    ask: (line, asked) => ask(handler, line, asked),
  }
}

export const ORIGIN = 'http://app.test'

export function toRequest(line: string, { body, headers = {} }: Asked = {}): Request {
  const [method = 'GET', path = '/'] = line.split(' ')
  const content = body === undefined ? {} : { 'content-type': 'application/json' }
  return new Request(`${ORIGIN}${path}`, {
    method,
    headers: { ...content, ...headers },
    ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
  })
}

function isRaw(body: unknown): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === 'string' || body instanceof Uint8Array
}

async function ask(handler: DurablyHandler, line: string, asked?: Asked): Promise<Answered> {
  const response = await handler(toRequest(line, asked))
  const { status, headers } = response
  // Hints have no end.
  const isEndless = line.startsWith('GET /events') && status === 200
  if (isEndless) await response.body?.cancel()
  const json = isEndless ? '' : await jsonOf(response)
  expectAllDescribed()
  return { status, headers, json }
}
