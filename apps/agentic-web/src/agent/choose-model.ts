import type { Database } from '../database/open'
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

/** The model a user has chosen. Key and token are opened here, in the worker, for this turn alone. */
export function createModelChoice(database: Database, models: Models): AgentParts['modelOf'] {
  return async (userId) => {
    const { settings, apiKey } = await readSettings(database, userId)
    const { provider, base_url, model, reasoning } = settings
    if (provider === 'demo' || base_url === null) return { model: models.demo, reasoning }
    return { model: models.openAiCompatible({ baseUrl: base_url, model, apiKey }), reasoning }
  }
}
