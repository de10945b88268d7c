import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import { openApi } from './api'
import { described, DOCUMENT, misfitsOf, takeMisfits } from './described'

it('is a document of OpenAPI 3.1 that says what every route takes and answers', async () => {
  const validator = new Validator()
  expect(await validator.validate(structuredClone(DOCUMENT))).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
  await expect(JSON.stringify(DOCUMENT, null, 2)).toMatchFileSnapshot('./openapi.snapshot')
})

it('knows everything that is answered', () => {
  const answered = { status: 200, headers: new Headers({ 'content-type': 'application/json' }), json: {} }
  for (const line of ['GET /nothing', 'GET /runs/x/nothing', 'PUT /runs', 'GET /runs/x/cancel', 'OPTIONS /nothing'])
    expect(misfitsOf(line, answered), line).not.toEqual([])
})

const HEADERS = { 'content-type': 'text/event-stream' }
const HINT = { id: 'x', status: 'pending', version: 1 }

it.each([
  ['/events', `data: ${JSON.stringify(HINT)}\n\n`, 0],
  ['/events', `data: ${JSON.stringify({ ...HINT, version: 'one' })}\n\n`, 1],
  ['/events', `event: reload\ndata: {}\n\nevent: other\ndata: {}\n\n`, 1],
  ['/runs/x/events', 'event: done\ndata: {"status":"failed"}\n\nevent: done\ndata: {"status":"over"}\n\n', 1],
  ['/runs/x/events', 'id: 1\ndata: {"type":"run:trigger"}\n\n', 1],
])('knows everything that a stream tells: %s, %j', async (path, text, misfits) => {
  const { body } = await described(async () => new Response(text, { headers: HEADERS }))(new Request(`http://x${path}`))
  await new Response(body).text()
  expect(takeMisfits()).toHaveLength(misfits)
})

it('is served, with the place where the handler is mounted', async () => {
  const { handler } = openApi({ basePath: '/api/durably' })
  const response = await handler(new Request('http://app.test/api/durably/openapi.json'))
  expect(await response.json()).toEqual({ ...DOCUMENT, servers: [{ url: '/api/durably' }] })
})
