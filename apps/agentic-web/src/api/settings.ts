import { Hono } from 'hono'
import { type Settings, settingsBodySchema, type ToolList } from '../contract'
import { isModelHost, readSettings, writeSettings } from '../settings/settings'
import { knownTools } from '../tools/known-tools'
import { readBody } from './body'
import { RequestError } from './problem'
import type { AppContext, AppEnv, Services } from './services'

export function settingsRoutes(services: Services): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get('/', async (context) => context.json((await readSettings(services, context.var.user.id)).settings))
    .put('/', async (context) => context.json(await changeSettings(services, context)))
}

async function changeSettings(services: Services, context: AppContext): Promise<Settings> {
  const body = await readBody(context, settingsBodySchema)
  const { provider, base_url } = body
  if (provider !== 'demo' && base_url === null) {
    throw new RequestError('VALIDATION', 'This provider needs a base_url.')
  }
  const { modelHosts } = services.config
  if (base_url !== null && !isModelHost(base_url, modelHosts)) {
    throw new RequestError('VALIDATION', `Models are asked at these hosts only: ${modelHosts.join(', ')}.`, {
      issues: [{ path: 'base_url', message: 'no host of MODEL_HOSTS' }],
    })
  }
  await writeSettings(services, context.var.user.id, body)
  return (await readSettings(services, context.var.user.id)).settings
}

export async function listTools({ db }: Services): Promise<ToolList> {
  const rows = await knownTools(db).selectAll().execute()
  return {
    tools: rows.map(({ name, description, input, needs_approval, side_effects }) => {
      return { name, description, input, needsApproval: needs_approval, sideEffects: side_effects }
    }),
  }
}
