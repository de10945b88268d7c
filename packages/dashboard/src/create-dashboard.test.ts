import { describe, expect, it } from 'vitest'
import type { Assets } from './assets'
import { serveDashboard } from './create-dashboard'

const ASSETS: Assets = {
  'index.html': { type: 'text/html', text: '<html><head><title>page</title></head></html>' },
  'assets/main-1a2b.js': { type: 'text/javascript; charset=utf-8', text: 'go()' },
}

const asked: string[] = []
const api = async (request: Request) => {
  asked.push(`${request.method} ${new URL(request.url).pathname}${new URL(request.url).search} ${await request.text()}`)
  return new Response('data', { status: 207 })
}
const dashboard = serveDashboard(ASSETS, { api, basePath: '/admin/durably' })
const get = (path: string, init?: RequestInit) => dashboard(new Request(`http://host${path}`, init))

describe('the handler of the dashboard', () => {
  it.each([
    [null, 'as an object'],
    [{}, 'needs api'],
    [{ api: '' }, 'needs api'],
    [{ api, basePath: 5 }, 'basePath must be a text'],
    [{ api, basepath: '/admin' }, 'knows no option "basepath"'],
  ])('is refused when its options make no sense: %j', (options, expected) => {
    expect(() => serveDashboard(ASSETS, options as never)).toThrow(expected)
  })

  it.each(['/admin/durably', '/admin/durably/', '/admin/durably/runs/1?tab=logs', '/admin/durably/anything.else'])(
    'serves the page at %s, which finds its files and its data from there',
    async (path) => {
      const response = await get(path)
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(text).toContain('<head>\n    <base href="/admin/durably/" />')
      expect(text).toContain('<meta name="durably-api" content="/admin/durably/api" />')
      expect(response.headers.get('cache-control')).toBe('no-cache')
      expect(response.headers.get('content-security-policy')).toContain("style-src 'self'; ")
    },
  )

  it('serves its files for ever, and knows of no others', async () => {
    const response = await get('/admin/durably/assets/main-1a2b.js')
    expect(await response.text()).toBe('go()')
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(response.headers.get('cache-control')).toContain('immutable')
    for (const path of ['/admin/durably/assets/main-old.js', '/admin/durably/assets/__proto__', '/admin', '/', '/x']) {
      expect((await get(path)).status).toBe(404)
    }
  })

  it('hands on what is for the data, from below its own address', async () => {
    asked.length = 0
    const body = { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } }
    expect((await get('/admin/durably/api/runs?limit=2')).status).toBe(207)
    await get('/admin/durably/api/runs', body)
    await get('/admin/durably/api')
    expect(asked).toEqual(['GET /runs?limit=2 ', 'POST /runs {"a":1}', 'GET / '])
  })

  it('leaves the data to who serves them elsewhere', async () => {
    const page = await serveDashboard(ASSETS, { api: '/api/"><script>' })(new Request('http://host/'))
    const text = await page.text()
    expect(text).toContain('<base href="/" />')
    expect(text).toContain('content="/api/&quot;>&lt;script>"')
    const none = await serveDashboard(ASSETS, { api: '/api' })(new Request('http://host/api', { method: 'POST' }))
    expect(none.status).toBe(405)
    expect(none.headers.get('allow')).toBe('GET, HEAD')
  })

  it('answers HEAD as GET, without a body', async () => {
    const response = await get('/admin/durably/', { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })
})
