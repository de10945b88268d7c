import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import { DOCUMENT, expectDescribed, openApi } from './api'

it('is a document of OpenAPI 3.1 that says what every route takes and answers', async () => {
  const validator = new Validator()
  expect(await validator.validate(structuredClone(DOCUMENT))).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
  await expect(JSON.stringify(DOCUMENT, null, 2)).toMatchFileSnapshot('./openapi.snapshot')
})

it('knows everything that is answered', () => {
  const answered = { status: 200, headers: new Headers({ 'content-type': 'application/json' }), json: {} }
  for (const line of ['GET /nothing', 'GET /runs/x/nothing', 'PUT /runs', 'GET /runs/x/cancel', 'OPTIONS /nothing'])
    expect(() => expectDescribed(line, answered), line).toThrow()
})

it('is served, with the place where the handler is mounted', async () => {
  const { handler } = openApi({ basePath: '/api/durably' })
  const response = await handler(new Request('http://app.test/api/durably/openapi.json'))
  expect(await response.json()).toEqual({ ...DOCUMENT, servers: [{ url: '/api/durably' }] })
})
