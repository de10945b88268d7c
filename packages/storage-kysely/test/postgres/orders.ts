import pg from 'pg'
import type { Session } from './session'

/** Who has its turn when, by number. */
export type Order = readonly number[]

/** All ways in which sessions with so many turns each can have them. */
export function allOrders(turns: readonly number[]): readonly Order[] {
  if (turns.every((left) => left === 0)) return [[]]
  return turns.flatMap((left, session) => {
    if (left === 0) return []
    const rest = turns.map((count, index) => (index === session ? count - 1 : count))
    return allOrders(rest).map((order) => [session, ...order])
  })
}

/** Two, one wholly after the other, meet nowhere. */
export function isMixed(order: Order): boolean {
  return order.filter((session, index) => index > 0 && order[index - 1] !== session).length > 1
}

/** Looks from outside whether a session waits for a lock. */
export class Watch {
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async open(url: string): Promise<Watch> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    return new Watch(client)
  }

  readonly isBlocked = async (pid: number): Promise<boolean> => {
    const { rows } = await this.#client.query(
      "select 1 from pg_stat_activity where pid = $1 and state = 'active' and wait_event_type = 'Lock'",
      [pid],
    )
    return rows.length > 0
  }

  async query<T extends Record<string, unknown>>(text: string, values: readonly unknown[] = []): Promise<readonly T[]> {
    return (await this.#client.query<T>(text, [...values])).rows
  }

  end(): Promise<void> {
    return this.#client.end()
  }
}

interface PlayParams {
  readonly sessions: readonly Session[]
  readonly order: Order
  readonly watch: Watch
}

/** Gives the sessions their turns; who is blocked loses its turn. Then all run freely to their end. */
export async function giveTurns({ sessions, order, watch }: PlayParams): Promise<void> {
  const settle = async () => {
    for (const session of sessions) await session.settle(watch.isBlocked)
  }
  await settle()
  for (const turn of order) {
    sessions[turn]?.takeTurn()
    await settle()
  }
  for (const session of sessions) session.letGo()
}
