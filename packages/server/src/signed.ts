import { InvalidOptionError, type Run } from '@coji/durably-core'
import { encodeValue } from '@coji/durably-core/extend'

/** What a link does, and until when. */
export interface SignedSignal {
  readonly runId: string
  readonly signalName: string
  readonly payload: unknown
  /** The name of the wait it answers. Without one it is for the first wait that takes the signal. */
  readonly step?: string | undefined
  /** Milliseconds since 1970. */
  readonly expires: number
  /** Makes it one link. */
  readonly id: string
}

/** What `signLink()` takes beside the run and its signal. */
export interface SignLinkOptions {
  /** What the signal brings. */
  readonly payload?: unknown
  /**
   * The name of the `ctx.waitFor()` that it answers, and no other one. Needed where several waits of a run take the same signal: by
   * itself a link is for the first of them.
   */
  readonly step?: string | undefined
  /** Until when it may be followed: a `Date`, or milliseconds from now. */
  readonly expires: Date | number
  /** The `linkSecret` of the handler. */
  readonly secret: string
  /** Where the handler is: `https://app.example.com/api/durably`. */
  readonly url: string
}

const SHORTEST_SECRET = 32
const LONGEST_PAYLOAD = 2000
/** What is later is no date that a page could show. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * An address for mail and chat that sends a signal to a run, once, after it was asked whether it should: whoever has it may, without
 * being known.
 */
export async function signLink(run: Pick<Run, 'id'>, signalName: string, options: SignLinkOptions): Promise<string> {
  const { payload, step, secret, url } = options
  requireSecret(secret)
  const value = encodeValue(payload, `The payload of a link for "${signalName}"`)
  if ((value?.length ?? 0) > LONGEST_PAYLOAD) {
    throw new InvalidOptionError(
      `The payload of a link may have ${LONGEST_PAYLOAD} characters: mail programs cut longer addresses.`,
    )
  }
  const signed: SignedSignal = {
    ...{ runId: run.id, signalName, step, payload: value === null ? undefined : JSON.parse(value) },
    ...{ expires: instantOf(options.expires), id: crypto.randomUUID() },
  }
  const text = toBase64Url(new TextEncoder().encode(JSON.stringify(signed)))
  return `${url.replace(/\/$/, '')}/link?token=${text}.${toBase64Url(await signatureOf(text, secret))}`
}

export function requireSecret(secret: unknown): void {
  if (typeof secret === 'string' && secret.length >= SHORTEST_SECRET) return
  throw new InvalidOptionError(`The secret of links must be a text of ${SHORTEST_SECRET} characters or more.`)
}

function instantOf(expires: Date | number): number {
  const at =
    expires instanceof Date ? expires.getTime() : typeof expires === 'number' ? Date.now() + expires : Number.NaN
  if (Number.isFinite(at) && at <= LAST_MS) return at
  throw new InvalidOptionError(
    `expires must be a Date or a number of milliseconds, up to the year 9999, not ${String(expires)}.`,
  )
}

/** `null` for what was not signed with the secret. */
export async function readLink(token: string, secret: string): Promise<SignedSignal | null> {
  const [text = '', signature = ''] = token.split('.')
  const given = fromBase64Url(signature)
  if (given === null) return null
  const isOurs = await crypto.subtle.verify('HMAC', await keyOf(secret), given, new TextEncoder().encode(text))
  const bytes = isOurs ? fromBase64Url(text) : null
  return bytes === null ? null : (JSON.parse(new TextDecoder().decode(bytes)) as SignedSignal)
}

async function signatureOf(text: string, secret: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign('HMAC', await keyOf(secret), new TextEncoder().encode(text)))
}

function keyOf(secret: string): Promise<CryptoKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  return crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['sign', 'verify'])
}

function toBase64Url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]+$/.test(text)) return null
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
  } catch {
    return null
  }
}
