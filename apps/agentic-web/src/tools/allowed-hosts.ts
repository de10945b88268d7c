/**
 * `example.com`: https there; `*.example.com`: below it; `example.com:8443`, `localhost:8080`: at that port, by http too,
 * which nobody means by a name alone. By what the URL parser made of the address, never by its text: what looks like
 * one host there is another one sometimes.
 */
export function requireAllowed(address: string, allowed: readonly string[]): URL {
  if (!URL.canParse(address)) throw new Error(`${address} is no address.`)
  const url = new URL(address)
  if (url.username !== '' || url.password !== '') throw new Error('Addresses with a user name are not asked.')
  if (allowed.some((host) => isHost(url, host.toLowerCase()))) return url
  throw new Error(`${url.protocol}//${url.host} may not be asked here. Allowed are: ${allowed.join(', ')}.`)
}

const PORTS: Readonly<Record<string, string>> = { 'https:': '443', 'http:': '80' }

function isHost(url: URL, listed: string): boolean {
  const [, name = '', port] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(listed) ?? []
  const isName = name.startsWith('*.') ? url.hostname.endsWith(name.slice(1)) : url.hostname === name
  if (!isName || name === '') return false
  if (port === undefined) return url.protocol === 'https:' && url.port === ''
  return url.protocol in PORTS && (url.port === '' ? PORTS[url.protocol] : url.port) === port
}
