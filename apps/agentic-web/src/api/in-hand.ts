import { RequestError, toResponse } from './problem'

type Answer = (request: Request, ...more: never[]) => Response | Promise<Response>

/** Knows which requests are being answered. A stream is answered when it begins: it ends with the database. */
export class InHand {
  readonly #answers = new Set<Promise<unknown>>()
  #isDraining = false

  track<TAnswer extends Answer>(answer: TAnswer): TAnswer {
    const tracked = (request: Request, ...more: never[]) => {
      if (this.#isDraining) return goneAway()
      const given = Promise.resolve(answer(request, ...more))
      const settled = given.catch(() => {}).finally(() => this.#answers.delete(settled))
      this.#answers.add(settled)
      return given
    }
    return tracked as TAnswer
  }

  /** Takes nothing more, and waits for what was begun. */
  async drain(): Promise<void> {
    this.#isDraining = true
    await Promise.all(this.#answers)
  }
}

function goneAway(): Response {
  const response = toResponse(new RequestError('UNAVAILABLE', 'This instance is going away.', { retryAfterSeconds: 1 }))
  response.headers.set('connection', 'close')
  return response
}
