import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signLink } from '../src'
import { openApi, type ApiOptions } from './api'

const SECRET = 'a secret that is long enough for it'
const URL_OF_APP = 'http://app.test'

async function openWithLink(over: Partial<Parameters<typeof signLink>[2]> = {}, options: ApiOptions = {}) {
  const api = openApi({ authorize: () => null, linkSecret: SECRET, ...options })
  api.durably.defineJob({ name: 'ask <b>', input: z.unknown() }, (ctx) =>
    ctx.waitFor('approval', { schema: z.unknown() }),
  )
  const run = await api.durably.trigger('ask <b>', 1)
  await api.durably.runUntilIdle()
  const link = await signLink(run, 'approval', {
    payload: { ok: '<script>' },
    expires: 60_000,
    secret: SECRET,
    url: URL_OF_APP,
    ...over,
  })
  const path = link.slice(URL_OF_APP.length)
  const form = { headers: { 'content-type': 'application/x-www-form-urlencoded', origin: URL_OF_APP } }
  return { ...api, run, path, show: () => api.ask(`GET ${path}`), confirm: () => api.ask(`POST ${path}`, form) }
}

describe('a signed link', () => {
  it('shows what it would do and asks, then does it, once, for somebody whom nobody knows', async () => {
    const { durably, run, show, confirm } = await openWithLink()
    const shown = await show()
    expect(shown.status).toBe(200)
    expect(shown.json).toContain('approval')
    expect(shown.json).toContain('ask &lt;b&gt;')
    expect(shown.json).toContain('&lt;script&gt;')
    expect(shown.json).not.toContain('<script>')
    expect(shown.headers.get('content-security-policy')).toContain("default-src 'none'")
    await durably.runUntilIdle()
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'pending' })
    expect(await confirm()).toMatchObject({ status: 200, json: expect.stringContaining('Done') })
    expect((await confirm()).status).toBe(409)
    await durably.runUntilIdle()
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed', output: { ok: '<script>' } })
    expect(await show()).toMatchObject({ status: 409, json: expect.stringContaining('ended') })
    expect((await confirm()).status).toBe(409)
  })

  it('has a style that its own policy lets in', async () => {
    const { show } = await openWithLink()
    const { json, headers } = await show()
    const [, style = ''] = /<style>(.*)<\/style>/.exec(json) ?? []
    const hash = createHash('sha256').update(style).digest('base64')
    expect(style).not.toBe('')
    expect(headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`)
  })

  it('is confirmed by a browser, for which its page has no origin', async () => {
    const { ask, path } = await openWithLink()
    const headers = {
      origin: 'null',
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/x-www-form-urlencoded',
    }
    expect((await ask(`POST ${path}`, { headers })).status).toBe(200)
  })

  it('is refused when it was changed, cut off, signed by somebody else, or has expired', async () => {
    const { ask, path, durably, run } = await openWithLink()
    const [text = '', signature = ''] = path.split('token=')[1]?.split('.') ?? []
    const other = btoa(
      JSON.stringify({ runId: run.id, signalName: 'approval', payload: 1, expires: 9e15, id: 'x' }),
    ).replaceAll('=', '')
    for (const token of [
      `${other}.${signature}`,
      text,
      `${text}.`,
      `${text}.${signature.slice(0, -2)}`,
      'x',
      '.',
      `${text}.!!`,
    ]) {
      for (const method of ['GET', 'POST'])
        expect((await ask(`${method} /link?token=${token}`)).status, token).toBe(403)
    }
    const foreign = await openWithLink({ secret: 'another secret that is long enough' })
    expect((await foreign.confirm()).status).toBe(403)
    const expired = await openWithLink({ expires: new Date(Date.now() - 1) })
    expect([(await expired.show()).status, (await expired.confirm()).status]).toEqual([410, 410])
    expect(await durably.getRun(run.id)).toMatchObject({ status: 'pending' })
  })

  it('is confirmed on its own page alone, and says when its run is gone', async () => {
    const { ask, path, durably, run, show } = await openWithLink()
    expect((await ask(`POST ${path}`, { headers: { origin: 'https://other.test' } })).status).toBe(403)
    await durably.cancel(run.id)
    await durably.deleteRun(run.id)
    expect((await show()).status).toBe(404)
  })

  describe('beside others', () => {
    async function openWithRounds() {
      const api = openApi({ authorize: () => null, linkSecret: SECRET })
      api.durably.defineJob({ name: 'rounds', input: z.unknown() }, async (ctx) => [
        await ctx.waitFor('round 1', { signal: 'approval', schema: z.unknown() }),
        await ctx.waitFor('round 2', { signal: 'approval', schema: z.unknown() }),
      ])
      const run = await api.durably.trigger('rounds', 1)
      const confirm = async (payload: string, step?: string) => {
        const link = await signLink(run, 'approval', {
          payload,
          step,
          expires: 60_000,
          secret: SECRET,
          url: URL_OF_APP,
        })
        return async () => (await api.ask(`POST ${link.slice(URL_OF_APP.length)}`, { headers })).status
      }
      return { ...api, run, confirm }
    }

    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: URL_OF_APP }

    it.each(['round 1', undefined])(
      'of its wait (%s) counts once with them, and not for the next wait',
      async (step) => {
        const { durably, run, confirm } = await openWithRounds()
        await durably.runUntilIdle()
        const [yes, no] = [await confirm('yes', step), await confirm('no', step)]
        expect([await yes(), await no()]).toEqual([200, 409])
        await durably.runUntilIdle()
        expect(await no()).toBe(409)
        await durably.signal(run.id, 'approval', 'second')
        await durably.runUntilIdle()
        expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed', output: ['yes', 'second'] })
      },
    )

    it('is over when its wait was answered in another way', async () => {
      const { durably, run, confirm } = await openWithRounds()
      const links = [await confirm('no', 'round 1'), await confirm('no')]
      await durably.runUntilIdle()
      await durably.signal(run.id, 'approval', 'first')
      await durably.runUntilIdle()
      for (const follow of links) expect(await follow()).toBe(409)
    })

    it('of a later wait answers that one alone', async () => {
      const { durably, run, confirm } = await openWithRounds()
      const [first, second] = [await confirm('one', 'round 1'), await confirm('two', 'round 2')]
      expect(await second()).toBe(409)
      await durably.runUntilIdle()
      expect([await second(), await first()]).toEqual([409, 200])
      await durably.runUntilIdle()
      expect(await second()).toBe(200)
      await durably.runUntilIdle()
      expect(await durably.getRun(run.id)).toMatchObject({ status: 'completed', output: ['one', 'two'] })
    })

    it('may come before the first wait, once', async () => {
      const { durably, run, confirm } = await openWithRounds()
      const [yes, no] = [await confirm('yes'), await confirm('no')]
      expect([await yes(), await no()]).toEqual([200, 409])
      await durably.runUntilIdle()
      expect(await no()).toBe(409)
      expect(await durably.getRun(run.id)).toMatchObject({ status: 'pending' })
    })
  })

  it('is not there without a secret, and needs a good one', async () => {
    const { ask, path, run } = await openWithLink({}, { linkSecret: undefined })
    expect(await ask(`GET ${path}`)).toMatchObject({ status: 404, json: { code: 'NO_SUCH_ROUTE' } })
    expect(() => openApi({ linkSecret: 'short' })).toThrow('32 characters')
    const options = { expires: 1, secret: SECRET, url: '' }
    await expect(signLink(run, 'a', { ...options, secret: 'short' })).rejects.toThrow('32 characters')
    await expect(signLink(run, 'a', { ...options, payload: 'x'.repeat(2000) })).rejects.toThrow('2000 characters')
    for (const expires of [Number.NaN, 1e16, Number.MAX_VALUE, new Date(Number.NaN), null as never]) {
      await expect(signLink(run, 'a', { ...options, expires })).rejects.toThrow('expires')
    }
  })
})
