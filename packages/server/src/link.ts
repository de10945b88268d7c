import { ConflictError, isEnded, type Run } from '@coji/durably-core'
import type { StepRecord } from '@coji/durably-core/storage'
import { HttpProblem } from './problem'
import type { Call } from './route'
import { readLink, type SignedSignal } from './signed'

type LinkCall = Call<{ readonly token: string }>

/** `GET /link`: says what would happen, and asks. Whatever looks at addresses in mails on its own does no harm. */
export async function showLink(call: LinkCall): Promise<Response> {
  const found = await linkOf(call)
  return found instanceof Response ? found : askPage(found)
}

/** `POST /link`: sends the signal, once. */
export async function followLink(call: LinkCall): Promise<Response> {
  const found = await linkOf(call)
  if (found instanceof Response) return found
  const { runId, signalName, payload, step = signalName } = found.signed
  try {
    const { deduplicated } = await call.server.durably.signal(runId, signalName, payload, {
      // Of the wait, not of the link: after a yes the no is not kept for the next wait.
      dedupeKey: `link:${step}`,
    })
    return deduplicated
      ? page(409, 'This was done before', 'Somebody has answered, with this link or another one.')
      : page(200, 'Done', 'You may close this page.')
  } catch (error) {
    if (error instanceof ConflictError) return endedPage()
    throw error
  }
}

interface Link {
  readonly signed: SignedSignal
  readonly run: Run
}

async function linkOf({ server, query }: LinkCall): Promise<Link | Response> {
  const { linkSecret } = server.settings
  if (linkSecret === null) throw new HttpProblem('NO_SUCH_ROUTE', 'There is nothing at this address.')
  const signed = await readLink(query.token, linkSecret)
  if (signed === null) return page(403, 'This link is not valid', 'It may have been cut off. Copy the whole address.')
  if (signed.expires < Date.now()) return page(410, 'This link has expired', 'Ask for a new one.')
  const run = await server.durably.getRun(signed.runId)
  if (run === null) return page(404, 'This is gone', 'What the link was for was removed.')
  if (isEnded(run.status)) return endedPage()
  const state = waitIn(await server.durably.storage.getSteps(run.id), signed)
  if (state === 'over') return endedPage()
  return state === 'open' ? { signed, run } : page(409, 'Nothing waits for this yet', 'Try again a little later.')
}

/** A link of no wait in particular may come early, as signals may, and is for the first wait alone. */
function waitIn(steps: readonly StepRecord[], { signalName, step }: SignedSignal): 'open' | 'over' | 'to come' {
  const waits = steps.filter(({ kind, name, waitName }) => kind === 'signal' && (waitName ?? name) === signalName)
  const open = new Set(waits.filter(({ status }) => status === 'waiting').map(({ name }) => name))
  if (step === undefined) return waits.every(({ name }) => open.has(name)) ? 'open' : 'over'
  if (open.has(step)) return open.size === 1 ? 'open' : 'to come'
  return waits.some(({ name }) => name === step) ? 'over' : 'to come'
}

function endedPage(): Response {
  return page(409, 'Nothing waits for this any more', 'What the link was for has ended.')
}

function askPage({ signed: { signalName, payload, expires }, run }: Link): Response {
  const details = [
    ['What', signalName],
    ['For', `${run.jobName}, ${run.id}`],
    ...(payload === undefined ? [] : [['With', JSON.stringify(payload, null, 2)]]),
    ['Until', new Date(expires).toISOString()],
  ].map(([name = '', text = '']) => `<dt>${name}</dt><dd><pre>${escape(text)}</pre></dd>`)
  const form = '<form method="post"><button type="submit">Confirm</button></form>'
  return html(200, 'Please confirm', `<dl>${details.join('')}</dl>${form}`)
}

function page(status: number, title: string, text: string): Response {
  return html(status, title, `<p>${escape(text)}</p>`)
}

/** A page of its own, on a phone as well, which needs no file. */
const STYLE = [
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}',
  'body{margin:0}',
  'main{box-sizing:border-box;max-width:560px;margin:8vh auto;padding:0 20px}',
  'h1{font-size:1.5rem}',
  'dt{margin-top:14px;font-size:.875rem;opacity:.75}',
  'dd{margin:0}',
  'pre{margin:0;font:inherit;white-space:pre-wrap;overflow-wrap:anywhere}',
  'button{min-height:44px;margin-top:28px;padding:0 24px;font:inherit;font-weight:600;color:#fff;background:#3157d0;border:0;border-radius:8px;cursor:pointer}',
].join('')

/** Of the style, so that no other one counts. */
const STYLE_HASH = 'sha256-24+MkHVozi5D05JFbEBRKyFQ7Sb1qJGCg+DBZ1p0Jfc='

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src '${STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  // The address is the permission.
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

function html(status: number, title: string, body: string): Response {
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escape(title)}</title><style>${STYLE}</style>`
  const text = `<!doctype html><html lang="en"><head>${head}</head><body><main><h1>${escape(title)}</h1>${body}</main></body></html>`
  return new Response(text, { status, headers: HEADERS })
}

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ESCAPED[char] ?? char)
}
