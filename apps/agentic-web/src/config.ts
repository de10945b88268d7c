import { z } from 'zod'
import { readKeys, type SecretKey } from './secrets/keys'

/** Where the sign-in, or the account at a model provider, is. */
export interface OAuthProvider {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string | null
  readonly scope: string
}

/** What both kinds of processes have to know. */
export interface Config {
  readonly profile: 'dev-local' | 'prod'
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly secretKeys: readonly SecretKey[]
  readonly openai: OAuthProvider | null
  /** Where the token of such an account is sent to, and nowhere else. */
  readonly openaiOrigin: string
  /** Hosts of models that users may name; a worker asks no other. */
  readonly modelHosts: readonly string[]
  /** Where spans and metrics go; `null`: nowhere. */
  readonly collector: string | null
}

/** What a process of the api has to know beside that. */
export interface ApiConfig extends Config {
  readonly port: number
  readonly host: string
  /** The origin under which the browser sees all of this. Never taken from a request. */
  readonly publicUrl: string
  readonly linkSecret: string
  readonly demoUsers: boolean
  readonly signIn: OAuthProvider | null
  /** How many proxies in front of it are ours: the address of who asks is that many places from the end. */
  readonly trustedProxies: number
  readonly runsPerMinute: number
}

/** What a worker has to know beside that. */
export interface WorkerConfig extends Config {
  readonly workerId: string | undefined
  readonly deadWorkerId: string | undefined
  /** Where it answers for its health; `null`: nowhere. */
  readonly healthPort: number | null
  readonly concurrency: number
  readonly leaseMs: number
  readonly drainMs: number
  readonly fetchHosts: readonly string[]
  readonly sandbox: 'off' | 'bwrap'
  readonly sessionDays: number
  readonly demoWordMs: number
}

export type Env = Readonly<Record<string, string | undefined>>

/** Everything that is wrong, at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(troubles: readonly string[]) {
    super(`The configuration makes no sense:\n${troubles.map((trouble) => `  - ${trouble}`).join('\n')}`)
  }
}

/** The secret that docker-compose.yml falls back to, so that the first start needs none. Everybody knows it. */
const KNOWN_TO_EVERYBODY = 'for-development-only'

/** As `URL` writes them: every way to write an address has become one. */
const LOOPBACK = /^(127\.[\d.]+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[\da-f:]+\]|(.+\.)?localhost)\.?$/

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== ''),
)
const count = (preset: number) => z.coerce.number().int().min(1).default(preset)
const flag = z.enum(['0', '1'], { error: 'must be 0 or 1' }).transform((text) => text === '1')

const commonShape = {
  PROFILE: z.enum(['dev-local', 'prod'], { error: 'must be dev-local or prod' }).default('prod'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'must be the address of a Postgres (postgres://…)' }),
  DATABASE_CONNECTIONS: z.coerce.number().int().min(3, 'must be 3 or more').default(10),
  SECRET_KEYS: z.string({ error: 'is missing: a comma-separated list of id:key, the first of which encrypts' }),
  OPENAI_OAUTH_ISSUER: z.url().optional(),
  OPENAI_OAUTH_CLIENT_ID: z.string().optional(),
  OPENAI_OAUTH_CLIENT_SECRET: z.string().optional(),
  OPENAI_OAUTH_SCOPE: z.string().default('openid offline_access'),
  OPENAI_API_ORIGIN: z.url({ protocol: /^https?$/ }).default('https://api.openai.com'),
  MODEL_HOSTS: list.default(['api.openai.com']),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/, error: 'must be the address of a collector (http://…)' })
    .optional(),
}

const apiSchema = z.object({
  ...commonShape,
  PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  HOST: z.string().default('0.0.0.0'),
  PUBLIC_URL: z.url({ protocol: /^https?$/, error: 'must be the address that browsers use (https://…)' }),
  LINK_SECRET: z.string({ error: 'is missing: 32 characters or more' }).min(32, 'must have 32 characters or more'),
  DEMO_USERS: flag.default(false),
  SIGN_IN_ISSUER: z.url().optional(),
  SIGN_IN_CLIENT_ID: z.string().optional(),
  SIGN_IN_CLIENT_SECRET: z.string().optional(),
  SIGN_IN_SCOPE: z.string().default('openid profile email'),
  TRUSTED_PROXIES: z.coerce.number().int().min(0).default(0),
  RUNS_PER_MINUTE: count(60),
})

const workerSchema = z.object({
  ...commonShape,
  WORKER_ID: z.string().optional(),
  DEAD_WORKER_ID: z.string().optional(),
  HEALTH_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  WORKER_CONCURRENCY: count(10),
  LEASE_MS: z.coerce.number().int().min(1000, 'must be 1000 or more').default(30_000),
  DRAIN_MS: z.coerce.number().int().min(0).default(10_000),
  FETCH_HOSTS: list.default([]),
  SANDBOX: z.enum(['off', 'bwrap'], { error: 'must be off or bwrap' }).default('off'),
  SESSION_DAYS: count(30),
  DEMO_WORD_MS: z.coerce.number().int().min(0).default(20),
})

type Values<TSchema extends z.ZodType> = z.output<TSchema>

export function readApiConfig(env: Env): ApiConfig {
  return read(apiSchema, env, (values, troubles) => {
    const publicUrl = new URL(values.PUBLIC_URL)
    if (publicUrl.href !== `${publicUrl.origin}/`) troubles.push('PUBLIC_URL must be an origin, without a path')
    const signIn = providerOf('SIGN_IN', values, troubles)
    const common = commonOf(values, troubles)
    if (values.PROFILE === 'prod') troubles.push(...troublesOfProd(values, publicUrl))
    if (signIn === null && !values.DEMO_USERS) {
      troubles.push('nobody could sign in: set SIGN_IN_ISSUER and SIGN_IN_CLIENT_ID, or DEMO_USERS=1 in dev-local')
    }
    return {
      ...common,
      port: values.PORT,
      host: values.HOST,
      publicUrl: publicUrl.origin,
      linkSecret: values.LINK_SECRET,
      demoUsers: values.DEMO_USERS,
      signIn,
      trustedProxies: values.TRUSTED_PROXIES,
      runsPerMinute: values.RUNS_PER_MINUTE,
    }
  })
}

export function readWorkerConfig(env: Env): WorkerConfig {
  return read(workerSchema, env, (values, troubles) => ({
    ...commonOf(values, troubles),
    workerId: values.WORKER_ID,
    deadWorkerId: values.DEAD_WORKER_ID,
    healthPort: values.HEALTH_PORT ?? null,
    concurrency: values.WORKER_CONCURRENCY,
    leaseMs: values.LEASE_MS,
    drainMs: values.DRAIN_MS,
    fetchHosts: values.FETCH_HOSTS,
    sandbox: values.SANDBOX,
    sessionDays: values.SESSION_DAYS,
    demoWordMs: values.DEMO_WORD_MS,
  }))
}

function read<TSchema extends z.ZodObject, TConfig>(
  schema: TSchema,
  env: Env,
  toConfig: (values: Values<TSchema>, troubles: string[]) => TConfig,
): TConfig {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''))
  const { success, data, error } = schema.safeParse(given)
  const troubles = error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`) ?? []
  // What cannot be read one by one is not looked at together: half a configuration would be told of twice.
  const config = success ? toConfig(data, troubles) : null
  if (config === null || troubles.length > 0) throw new ConfigError(troubles)
  return config
}

function commonOf(values: Values<z.ZodObject<typeof commonShape>>, troubles: string[]): Config {
  const { keys, trouble } = readKeys(values.SECRET_KEYS)
  if (trouble !== null) troubles.push(`SECRET_KEYS ${trouble}`)
  if (values.PROFILE === 'prod' && values.SECRET_KEYS.includes(KNOWN_TO_EVERYBODY)) {
    troubles.push('SECRET_KEYS has the key for development, which everybody knows')
  }
  return {
    profile: values.PROFILE,
    databaseUrl: values.DATABASE_URL,
    databaseConnections: values.DATABASE_CONNECTIONS,
    secretKeys: keys,
    openai: providerOf('OPENAI_OAUTH', values, troubles),
    openaiOrigin: new URL(values.OPENAI_API_ORIGIN).origin,
    modelHosts: values.MODEL_HOSTS,
    collector: values.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  }
}

function troublesOfProd(values: Values<typeof apiSchema>, { protocol, hostname }: URL): string[] {
  const troubles: string[] = []
  if (protocol !== 'https:') troubles.push('PUBLIC_URL must be https in prod')
  if (LOOPBACK.test(hostname)) troubles.push('PUBLIC_URL must not be a loopback address in prod')
  if (values.DEMO_USERS) troubles.push('DEMO_USERS must be off in prod')
  if (values.LINK_SECRET.includes(KNOWN_TO_EVERYBODY)) {
    troubles.push('LINK_SECRET is the one for development, which everybody knows')
  }
  return troubles
}

function providerOf(
  prefix: 'SIGN_IN' | 'OPENAI_OAUTH',
  env: Readonly<Record<string, unknown>>,
  troubles: string[],
): OAuthProvider | null {
  const read = (name: string) => (env[`${prefix}_${name}`] as string | undefined) ?? null
  const [issuer, clientId] = [read('ISSUER'), read('CLIENT_ID')]
  if (issuer === null && clientId === null) return null
  if (issuer === null || clientId === null) {
    troubles.push(`${prefix}_ISSUER and ${prefix}_CLIENT_ID belong together`)
    return null
  }
  if (env['PROFILE'] === 'prod' && new URL(issuer).protocol !== 'https:') {
    troubles.push(`${prefix}_ISSUER must be https in prod`)
  }
  return { issuer, clientId, clientSecret: read('CLIENT_SECRET'), scope: read('SCOPE') ?? '' }
}
