import { InvalidOptionError, UnknownOutcomeError } from '@coji/durably-core'
import { notOurs, toError, UnreachableError } from './errors'

/** Where the server is, and how it is asked. */
export interface TransportOptions {
  /** Where the handler is mounted: `/api/durably` or `https://app.example.com/api/durably`. */
  readonly url: string
  /** Instead of the global one. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined
  /** Sent with each request, such as a token: asked for each time. */
  readonly headers?:
    | ConstructorParameters<typeof Headers>[0]
    | (() => ConstructorParameters<typeof Headers>[0] | Promise<ConstructorParameters<typeof Headers>[0]>)
}

type QueryValue = string | number | boolean | Date | readonly string[] | Readonly<Record<string, string>> | undefined

export type Query = Readonly<Record<string, QueryValue>>

export interface Transport {
  get<T>(path: string, query?: Query): Promise<T>
  /** `body` is JSON text. */
  write<T>(line: 'POST' | 'DELETE', path: string, body?: string): Promise<T>
  /** A stream, as it was answered. */
  open(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response>
}

export function createTransport({ url, fetch: given, headers: ours }: TransportOptions): Transport {
  if (typeof url !== 'string') throw new InvalidOptionError(`The url of a client must be a text, not ${String(url)}.`)
  const base = url.replace(/\/$/, '')
  const send = given ?? ((request: Request) => fetch(request))

  async function toRequest(path: string, init: RequestInit): Promise<Request> {
    const headers = new Headers(typeof ours === 'function' ? await ours() : ours)
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value)
    return new Request(absolute(`${base}${path}`), { ...init, headers })
  }

  return {
    async get(path, query = {}) {
      const request = await toRequest(`${path}${toSearch(query)}`, {})
      return answerOf(send(request), (cause) => new UnreachableError(cause))
    },
    async write(method, path, body) {
      const content = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body }
      const request = await toRequest(path, { method, ...content })
      return answerOf(send(request), (cause) => new UnknownOutcomeError('the request', { cause }))
    },
    async open(path, headers, signal) {
      return send(await toRequest(path, { headers: { accept: 'text/event-stream', ...headers }, signal }))
    },
  }
}

/** Outside of a page there is nothing that an address could be relative to. */
function absolute(address: string): string {
  const { location } = globalThis as { readonly location?: { readonly href: string } }
  if (location !== undefined) return new URL(address, location.href).href
  if (URL.canParse(address)) return address
  throw new InvalidOptionError(`The url of a client outside of a page is a whole address, unlike "${address}".`)
}

function toSearch(query: Query): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (value instanceof Date) search.append(name, value.toISOString())
    else if (Array.isArray(value)) for (const each of value as readonly string[]) search.append(name, each)
    else if (typeof value !== 'object') search.append(name, String(value))
    else for (const [property, each] of Object.entries(value)) search.append(`${name}[${property}]`, String(each))
  }
  const text = String(search)
  return text === '' ? '' : `?${text}`
}

/** An answer that breaks off is lost as well as one that never came. */
async function answerOf<T>(answered: Promise<Response>, lost: (cause: unknown) => Error): Promise<T> {
  const orLost = (cause: unknown) => {
    throw lost(cause)
  }
  const response = await answered.catch(orLost)
  if (!response.ok) throw await toError(response)
  if (response.status === 204) return undefined as T
  const text = await response.text().catch(orLost)
  try {
    return JSON.parse(text) as T
  } catch {
    throw notOurs(response, 'JSON')
  }
}
