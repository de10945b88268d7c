import { createDashboard } from '@coji/durably-dashboard'
import { createDurablyHandler } from '@coji/durably-server'
import { Hono } from 'hono'
import { basicAuth } from 'hono/basic-auth'
import { order } from './jobs.js'

/** Who they are, and what they may do with runs. Ask your own users and sessions here. */
const USERS = /** @type {const} */ ({
  ada: { password: 'analytical', allow: 'all' },
  charles: { password: 'difference', allow: 'read' },
})

/** @param {string} name */
const userOf = (name) => (Object.hasOwn(USERS, name) ? USERS[/** @type {keyof typeof USERS} */ (name)] : null)

/** @param {Request} request */
function nameIn(request) {
  const [, credentials = ''] = request.headers.get('authorization')?.split(' ') ?? []
  return atob(credentials).split(':')[0] ?? ''
}

/** @param {import('@coji/durably').Durably} durably */
export function createApp(durably) {
  const api = createDurablyHandler(durably, {
    // The login has looked at the password before this is asked.
    authorize({ request }) {
      const name = nameIn(request)
      const user = userOf(name)
      return user && { actor: name, tenant: null, allow: user.allow }
    },
  })
  const dashboard = createDashboard({ api, basePath: '/admin/durably' })
  const login = basicAuth({ verifyUser: (name, password) => userOf(name)?.password === password })

  const app = new Hono()
  app.post('/orders', async (c) => {
    const { id, deduplicated } = await durably.trigger(order, await c.req.json(), {
      idempotencyKey: c.req.header('idempotency-key'),
    })
    return c.json({ id }, deduplicated ? 200 : 201)
  })
  app.get('/orders/:id', async (c) => {
    const run = await durably.getRun(c.req.param('id'))
    return run?.jobName === 'order' ? c.json({ status: run.status, output: run.output }) : c.notFound()
  })
  app.use('/api/durably/*', login).mount('/api/durably', api)
  app.use('/admin/*', login).all('/admin/*', (c) => dashboard(c.req.raw))
  app.get('/', (c) => c.redirect('/admin/durably'))
  return app
}
