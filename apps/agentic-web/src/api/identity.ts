import { randomUUID } from 'node:crypto'
import type { Context } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import { parse } from 'hono/utils/cookie'
import type { ApiConfig } from '../config'
import type { User } from '../contract'
import type { Database } from '../database/open'
import { hashOf, randomToken } from '../secrets/tokens'

const LOGIN_DAYS = 30
const DAY_MS = 86_400_000

/** Who everybody can be where the demo identity is on. */
export const DEMO_USERS: readonly User[] = [
  { id: 'demo-ada', name: 'Ada' },
  { id: 'demo-grace', name: 'Grace' },
]

const DEMO_ISSUER = 'demo'

/** The cookies of this deployment. `__Host-` is refused by browsers unless it is Secure and of this host alone. */
export function createCookies({ publicUrl }: Pick<ApiConfig, 'publicUrl'>) {
  const isSecure = publicUrl.startsWith('https:')
  const nameOf = (name: string) => (isSecure ? `__Host-${name}` : name)
  const attributes = { path: '/', httpOnly: true, sameSite: 'Lax', secure: isSecure } as const
  return {
    read({ headers }: Request, name: string): string | null {
      return parse(headers.get('cookie') ?? '', nameOf(name))[nameOf(name)] ?? null
    },
    write(context: Context, name: string, { value, maxAgeMs }: { readonly value: string; readonly maxAgeMs: number }) {
      setCookie(context, nameOf(name), value, { ...attributes, maxAge: Math.floor(maxAgeMs / 1000) })
    },
    remove: (context: Context, name: string) => void deleteCookie(context, nameOf(name), attributes),
  }
}

export type Cookies = ReturnType<typeof createCookies>

const LOGIN = 'login'

/** Who asks, by the cookie of their browser. Every instance finds the same. */
export class Identity {
  readonly #db: Database['db']
  readonly #cookies: Cookies

  constructor(db: Database['db'], cookies: Cookies) {
    this.#db = db
    this.#cookies = cookies
  }

  async userOf(request: Request): Promise<User | null> {
    const token = this.#cookies.read(request, LOGIN)
    if (token === null) return null
    const found = await this.#db
      .selectFrom('logins')
      .innerJoin('users', 'users.user_id', 'logins.user_id')
      .where('logins.token_hash', '=', hashOf(token))
      .where('logins.expires_at', '>', ({ fn }) => fn<Date>('now'))
      .select(['users.user_id', 'users.name'])
      .executeTakeFirst()
    return found === undefined ? null : { id: found.user_id, name: found.name }
  }

  /** A new login for each sign-in: a cookie that somebody planted before is worth nothing after it. */
  async signIn(context: Context, userId: string): Promise<void> {
    await this.#forget(context)
    const token = randomToken()
    const expires_at = new Date(Date.now() + LOGIN_DAYS * DAY_MS)
    await this.#db
      .insertInto('logins')
      .values({ token_hash: hashOf(token), user_id: userId, expires_at })
      .execute()
    this.#cookies.write(context, LOGIN, { value: token, maxAgeMs: LOGIN_DAYS * DAY_MS })
  }

  async signOut(context: Context): Promise<void> {
    await this.#forget(context)
    this.#cookies.remove(context, LOGIN)
  }

  async #forget(context: Context): Promise<void> {
    const token = this.#cookies.read(context.req.raw, LOGIN)
    if (token !== null) await this.#db.deleteFrom('logins').where('token_hash', '=', hashOf(token)).execute()
  }

  demoUser(userId: string): Promise<User> | null {
    const user = DEMO_USERS.find(({ id }) => id === userId)
    return user === undefined ? null : this.knownAs(user.name, { issuer: DEMO_ISSUER, subject: user.id, userId })
  }

  /** The user of a subject of an issuer, made when it comes the first time. */
  async knownAs(
    name: string,
    { issuer, subject, userId = randomUUID() }: { issuer: string; subject: string; userId?: string },
  ): Promise<User> {
    const { user_id } = await this.#db
      .insertInto('users')
      .values({ user_id: userId, name, issuer, subject })
      .onConflict((conflict) => conflict.columns(['issuer', 'subject']).doUpdateSet({ name }))
      .returning('user_id')
      .executeTakeFirstOrThrow()
    return { id: user_id, name }
  }
}
