/** Serves runs in workerd, where what outlives a request lives in a durable object. */
import type { DurablyHandler } from '@coji/durably-server'
import { openHandler } from './open-handler.ts'

export class Runs {
  #handler: Promise<DurablyHandler> | null = null

  async fetch(request: Request): Promise<Response> {
    this.#handler ??= openHandler()
    return (await this.#handler)(request)
  }
}

interface Env {
  readonly RUNS: { getByName(name: string): { fetch: DurablyHandler } }
}

// biome-ignore lint/style/noDefaultExport: it is what workerd asks for
export default {
  fetch: (request: Request, { RUNS }: Env) => RUNS.getByName('all').fetch(request),
}
