import type { Config } from '../config'
import type { Database } from '../database/open'
import { accessToken } from '../oauth/connection'
import { createProvider } from '../oauth/provider'
import { readSettings } from '../settings/settings'
import type { AgentParts } from './agent-job'
import type { Model } from './model'

interface Models {
  readonly demo: Model
  /** Any server that speaks as OpenAI's does. */
  openAiCompatible(settings: {
    readonly baseUrl: string
    readonly model: string
    readonly apiKey: string | null
  }): Model
}

type Choosing = Pick<Config, 'profile' | 'openai' | 'openaiOrigin'>

/** The model a user has chosen. Key and token are opened here, in the worker, for this turn alone. */
export function createModelChoice(database: Database, models: Models, config: Choosing): AgentParts['modelOf'] {
  const provider = config.openai === null ? null : createProvider(config.openai, config)
  return async (userId) => {
    const { settings, apiKey } = await readSettings(database, userId)
    const { base_url: baseUrl, model, reasoning } = settings
    if (settings.provider === 'demo' || baseUrl === null) return { model: models.demo, reasoning }
    const isOfAccount = apiKey === null && provider !== null && new URL(baseUrl).origin === config.openaiOrigin
    const token = isOfAccount ? await accessToken(database, { userId, provider }) : null
    return { model: models.openAiCompatible({ baseUrl, model, apiKey: apiKey ?? token }), reasoning }
  }
}
