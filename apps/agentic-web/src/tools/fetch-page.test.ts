import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireAllowed } from './allowed-hosts'
import { createFetchPage } from './fetch-page'
import { isPublicAddress } from './public-address'

function serve(request: IncomingMessage, response: ServerResponse): void {
  const answers: Record<string, () => void> = {
    '/page': () =>
      response.setHeader('content-type', 'text/html').end('<h1>A &amp; B</h1><script>evil()</script><p>text'),
    '/json': () => response.setHeader('content-type', 'application/json').end(JSON.stringify(request.headers)),
    '/moved': () => response.writeHead(302, { location: '/page' }).end(),
    '/away': () => response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
    '/round': () => response.writeHead(302, { location: '/round' }).end(),
    '/binary': () => response.setHeader('content-type', 'image/png').end('x'),
    '/endless': () => {
      response.setHeader('content-type', 'text/plain')
      const more = () => response.write('x'.repeat(65_536), () => response.destroyed || setImmediate(more))
      more()
    },
    '/silent': () => {},
  }
  answers[request.url ?? '']?.()
}

const server = createServer(serve)
let host = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  host = `localhost:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

type Options = Parameters<typeof createFetchPage>[1]
function fetchPage(url: string, options?: Options, allowed = [host]): Promise<{ text: string; isCut?: boolean }> {
  const tool = createFetchPage(allowed, options)
  const context = { signal: new AbortController().signal }
  return tool.execute({ url } as never, context as never) as Promise<{ text: string; isCut?: boolean }>
}

describe('fetching a page', () => {
  it('gives the text of a page, where it moved to as well', async () => {
    expect(await fetchPage(`http://${host}/page`)).toMatchObject({ status: 200, text: 'A & B\ntext' })
    expect(await fetchPage(`http://${host}/moved`)).toMatchObject({ url: `http://${host}/page`, text: 'A & B\ntext' })
  })

  it('tells the host nothing of the worker', async () => {
    const headers = JSON.parse((await fetchPage(`http://${host}/json`)).text)
    expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
  })

  it('ends a page that does not end, and one that does not begin', async () => {
    const { text, isCut } = await fetchPage(`http://${host}/endless`)
    expect([text.length, isCut]).toEqual([60_000, true])
    await expect(fetchPage(`http://${host}/silent`, { timeoutMs: 50 })).rejects.toThrow('took longer')
  })

  it('follows no redirect to another host, nor for ever', async () => {
    await expect(fetchPage(`http://${host}/away`)).rejects.toThrow('169.254.169.254 may not be asked here')
    await expect(fetchPage(`http://${host}/round`)).rejects.toThrow('redirects more than 5 times')
    await expect(fetchPage(`http://${host}/binary`)).rejects.toThrow('not text')
  })

  it('does not go where an allowed name leads into a private network', async () => {
    const resolve = async () => ({ address: '127.0.0.1', family: 4 })
    const port = host.split(':')[1]
    const fetched = fetchPage(`http://inside.example:${port}/page`, { resolve }, [`inside.example:${port}`])
    await expect(fetched).rejects.toThrow('inside.example is at 127.0.0.1, which is not on the public internet')
  })
})

describe('an allowed host', () => {
  const allowed = ['example.com', '*.example.org', 'localhost:8080', '[::1]:80']

  it.for([
    'https://example.com/a',
    'https://EXAMPLE.com',
    'https://a.b.example.org',
    'http://localhost:8080/',
    'http://[::1]/',
  ])('%s is one', (address) => {
    expect(() => requireAllowed(address, allowed)).not.toThrow()
  })

  it.for([
    ...[
      'http://example.com',
      'https://example.com:8443',
      'https://example.org',
      'https://evilexample.org',
      'https://a.example.com',
    ],
    ...[
      'https://example.com.evil.net',
      'https://example.com@evil.net',
      'https://evil.net#example.com',
      'https://x:y@example.com',
    ],
    ...[
      'https://example.com\0.evil.net',
      'https://evil.net/\\example.com',
      'ftp://localhost:8080',
      'file:///etc/passwd',
      'example.com',
    ],
    ...['http://localhost:80801', 'http://127.0.0.1:8080', 'https://example。com.evil.net', 'javascript:alert(1)'],
  ])('%j is none', (address) => {
    expect(() => requireAllowed(address, allowed)).toThrow()
  })
})

describe('an address', () => {
  it.for(['1.1.1.1', '93.184.216.34', '2606:4700::1111'])('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.for([
    ...[
      '127.0.0.1',
      '10.1.2.3',
      '172.31.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '255.255.255.255',
    ],
    ...[
      '::1',
      '::',
      '::ffff:10.0.0.1',
      'fe80::1',
      'fd00::1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '2001:db8::1',
      'ff02::1',
    ],
  ])('%s is not', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})
