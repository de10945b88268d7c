import { HttpProblem } from './problem'
import type { Settings } from './options'

/** A payload may be 64 deep, and is within something. */
const MAX_DEPTH = 70

/** The JSON of a request; `undefined` without a body. */
export async function readBody(request: Request, { maxBodyBytes }: Pick<Settings, 'maxBodyBytes'>): Promise<unknown> {
  const text = await readText(request, maxBodyBytes)
  const type = request.headers.get('content-type')
  if (type !== null && !/^application\/json\s*(;|$)/i.test(type)) throw notJson(`not ${type}`)
  if (text === '') return undefined
  if (type === null) throw notJson('and the request does not say what its body is')
  const value = parse(text)
  refuseHostile(value)
  return value
}

function notJson(found: string): HttpProblem {
  return new HttpProblem('UNSUPPORTED_MEDIA_TYPE', `A body must be application/json, ${found.slice(0, 100)}.`)
}

async function readText({ body, headers }: Request, limit: number): Promise<string> {
  if (body === null) return ''
  if (Number(headers.get('content-length') ?? 0) > limit) {
    await body.cancel().catch(() => {})
    throw tooLarge(limit)
  }
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const reader = body.getReader()
  let text = ''
  let bytes = 0
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      bytes += part.value.byteLength
      if (bytes > limit) throw tooLarge(limit)
      text += decoded(decoder, part.value)
    }
    return text + decoded(decoder)
  } catch (error) {
    // Nobody wants the rest.
    await reader.cancel().catch(() => {})
    throw error
  }
}

/** What is no text would be stored as another one. Without a part: what is left of the last character. */
function decoded(decoder: TextDecoder, part?: Uint8Array<ArrayBuffer>): string {
  try {
    return part === undefined ? decoder.decode() : decoder.decode(part, { stream: true })
  } catch {
    throw new HttpProblem('INVALID_REQUEST', 'The body is no UTF-8.')
  }
}

function tooLarge(limit: number): HttpProblem {
  return new HttpProblem('BODY_TOO_LARGE', `A body may have ${limit} bytes. Store a reference instead.`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpProblem('INVALID_REQUEST', 'The body is no JSON.')
  }
}

/** Neither deeper than anything is stored, nor with names that would change the prototypes of whoever copies it. */
function refuseHostile(root: unknown): void {
  const left: { readonly value: unknown; readonly depth: number }[] = [{ value: root, depth: 1 }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, depth } = next
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH) throw new HttpProblem('INVALID_REQUEST', `A body may be ${MAX_DEPTH} levels deep.`)
    if (Object.hasOwn(value, '__proto__'))
      throw new HttpProblem('INVALID_REQUEST', 'No property may be named __proto__.')
    for (const each of Object.values(value)) left.push({ value: each, depth: depth + 1 })
  }
}
