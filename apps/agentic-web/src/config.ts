import { z } from 'zod'
import type { User } from './sandbox/user'
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
  /** As whom it runs commands; `null`: as whom the worker runs. */
  readonly sandboxUser: User | null
  readonly sessionDays: number
  readonly demoWordMs: number
}

/** What the page and the proxy in front of the apis have to know. */
export interface WebConfig {
  readonly port: number
  readonly host: string
  readonly apiUrls: readonly string[]
  /** Where the built page is; `null`: beside the program. */
  readonly folder: string | null
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
const port = z.coerce.number().int().min(0).max(65_535)
const httpAddress = (what: string) => z.url({ protocol: /^https?$/, error: `must be the address of ${what}` })
const issuer = httpAddress('a provider (https://…)').optional()

const secretKeys = z
  .string({ error: 'is missing: a comma-separated list of id:key, the first of which encrypts' })
  .transform((text, { addIssue }) => {
    const { keys, trouble } = readKeys(text)
    if (trouble !== null) addIssue(trouble)
    return keys
  })

const origin = (error: string) =>
  z
    .url({ protocol: /^https?$/, error })
    .refine((text) => hasNoPath(text), 'must be an origin, without a path')
    .transform((text) => new URL(text).origin)

const user = z
  .string()
  .regex(/^\d{1,9}:\d{1,9}$/, 'must be two numbers, user:group, such as 65534:65534')
  .transform((text): User => {
    const [uid, gid] = text.split(':').map(Number)
    return { uid: uid ?? 0, gid: gid ?? 0 }
  })
  .refine(({ uid, gid }) => uid !== 0 && gid !== 0, 'must not be root, nor of its group')

const addresses = z
  .string({ error: 'is missing: a comma-separated list of the addresses of the apis' })
  .transform((text) => text.split(',').filter((part) => part !== ''))
  .pipe(z.array(httpAddress('an api (http://…)')).min(1))

const commonShape = {
  PROFILE: z.enum(['dev-local', 'prod'], { error: 'must be dev-local or prod' }).default('prod'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'must be the address of a Postgres (postgres://…)' }),
  DATABASE_CONNECTIONS: z.coerce.number().int().min(3, 'must be 3 or more').default(10),
  SECRET_KEYS: secretKeys,
  OPENAI_OAUTH_ISSUER: issuer,
  OPENAI_OAUTH_CLIENT_ID: z.string().optional(),
  OPENAI_OAUTH_CLIENT_SECRET: z.string().optional(),
  OPENAI_OAUTH_SCOPE: z.string().default('openid offline_access'),
  OPENAI_API_ORIGIN: origin('must be the address of an api (https://…)').default('https://api.openai.com'),
  MODEL_HOSTS: list.default(['api.openai.com']),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpAddress('a collector (http://…)').optional(),
}

const apiSchema = z.object({
  ...commonShape,
  PORT: port.default(8080),
  HOST: z.string().default('0.0.0.0'),
  PUBLIC_URL: origin('must be the address that browsers use (https://…)'),
  LINK_SECRET: z.string({ error: 'is missing: 32 characters or more' }).min(32, 'must have 32 characters or more'),
  DEMO_USERS: flag.default(false),
  SIGN_IN_ISSUER: issuer,
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
  HEALTH_PORT: port.optional(),
  WORKER_CONCURRENCY: count(10),
  LEASE_MS: z.coerce.number().int().min(1000, 'must be 1000 or more').default(30_000),
  DRAIN_MS: z.coerce.number().int().min(0).default(10_000),
  FETCH_HOSTS: list.default([]),
  SANDBOX: z.enum(['off', 'bwrap'], { error: 'must be off or bwrap' }).default('off'),
  SANDBOX_USER: user.optional(),
  SESSION_DAYS: count(30),
  DEMO_WORD_MS: z.coerce.number().int().min(0).default(20),
})

const webSchema = z.object({
  PORT: port.default(8080),
  HOST: z.string().default('0.0.0.0'),
  API_URLS: addresses,
  WEB_FOLDER: z.string().optional(),
})

/** All that each kind of process reads of its environment. */
export const VARIABLES = {
  api: Object.keys(apiSchema.shape),
  worker: Object.keys(workerSchema.shape),
  web: Object.keys(webSchema.shape),
}

export function readApiConfig(env: Env): ApiConfig {
  const values = read(apiSchema, env, (given) => [
    ...troublesOfCommon(given),
    ...troublesOfProvider('SIGN_IN', given),
    ...troublesOfEntrance(given),
    ...(isProd(given) ? troublesOfPublic(given) : []),
  ])
  return {
    ...commonOf(values),
    port: values.PORT,
    host: values.HOST,
    publicUrl: values.PUBLIC_URL,
    linkSecret: values.LINK_SECRET,
    demoUsers: values.DEMO_USERS,
    signIn: providerOf('SIGN_IN', values),
    trustedProxies: values.TRUSTED_PROXIES,
    runsPerMinute: values.RUNS_PER_MINUTE,
  }
}

export function readWorkerConfig(env: Env): WorkerConfig {
  const values = read(workerSchema, env, troublesOfCommon)
  return {
    ...commonOf(values),
    workerId: values.WORKER_ID,
    deadWorkerId: values.DEAD_WORKER_ID,
    healthPort: values.HEALTH_PORT ?? null,
    concurrency: values.WORKER_CONCURRENCY,
    leaseMs: values.LEASE_MS,
    drainMs: values.DRAIN_MS,
    fetchHosts: values.FETCH_HOSTS,
    sandbox: values.SANDBOX,
    sandboxUser: values.SANDBOX_USER ?? null,
    sessionDays: values.SESSION_DAYS,
    demoWordMs: values.DEMO_WORD_MS,
  }
}

export function readWebConfig(env: Env): WebConfig {
  const { PORT, HOST, API_URLS, WEB_FOLDER } = read(webSchema, env, () => [])
  return { port: PORT, host: HOST, apiUrls: API_URLS, folder: WEB_FOLDER ?? null }
}

/** What is set, as it is set. */
type Given = Readonly<Record<string, string>>

/** `together` finds what is wrong between variables, of which any may be wrong by itself: all of it is told in one message. */
function read<TSchema extends z.ZodObject>(
  schema: TSchema,
  env: Env,
  together: (given: Given) => readonly string[],
): z.output<TSchema> {
  const given = Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  )
  const { data, error } = schema.safeParse(given)
  const troubles = error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`) ?? []
  troubles.push(...together(given))
  if (data === undefined || troubles.length > 0) throw new ConfigError(troubles)
  return data
}

function commonOf(values: z.output<z.ZodObject<typeof commonShape>>): Config {
  return {
    profile: values.PROFILE,
    databaseUrl: values.DATABASE_URL,
    databaseConnections: values.DATABASE_CONNECTIONS,
    secretKeys: values.SECRET_KEYS,
    openai: providerOf('OPENAI_OAUTH', values),
    openaiOrigin: values.OPENAI_API_ORIGIN,
    modelHosts: values.MODEL_HOSTS,
    collector: values.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
  }
}

type ProviderPrefix = 'SIGN_IN' | 'OPENAI_OAUTH'

function providerOf(prefix: ProviderPrefix, values: Readonly<Record<string, unknown>>): OAuthProvider | null {
  const valueOf = (name: string) => (values[`${prefix}_${name}`] as string | undefined) ?? null
  const [issuerUrl, clientId] = [valueOf('ISSUER'), valueOf('CLIENT_ID')]
  if (issuerUrl === null || clientId === null) return null
  return { issuer: issuerUrl, clientId, clientSecret: valueOf('CLIENT_SECRET'), scope: valueOf('SCOPE') ?? '' }
}

/** As strict as prod, where it is not said to be anything else. */
function isProd({ PROFILE }: Given): boolean {
  return PROFILE !== 'dev-local'
}

function troublesOfCommon(given: Given): string[] {
  const troubles = troublesOfProvider('OPENAI_OAUTH', given)
  if (isProd(given)) troubles.push(...troublesOfOrigin('OPENAI_API_ORIGIN', given))
  if (isProd(given) && given['SECRET_KEYS']?.includes(KNOWN_TO_EVERYBODY)) {
    troubles.push('SECRET_KEYS has the key for development, which everybody knows')
  }
  return troubles
}

function troublesOfProvider(prefix: ProviderPrefix, given: Given): string[] {
  const [issuerUrl, clientId] = [given[`${prefix}_ISSUER`], given[`${prefix}_CLIENT_ID`]]
  const troubles: string[] = []
  if ((issuerUrl === undefined) !== (clientId === undefined)) {
    troubles.push(`${prefix}_ISSUER and ${prefix}_CLIENT_ID belong together`)
  }
  if (isProd(given) && addressOf(issuerUrl)?.protocol === 'http:')
    troubles.push(`${prefix}_ISSUER must be https in prod`)
  return troubles
}

function troublesOfEntrance({ SIGN_IN_ISSUER, SIGN_IN_CLIENT_ID, DEMO_USERS = '0' }: Given): string[] {
  const isClosed = SIGN_IN_ISSUER === undefined && SIGN_IN_CLIENT_ID === undefined && DEMO_USERS === '0'
  return isClosed
    ? ['nobody could sign in: set SIGN_IN_ISSUER and SIGN_IN_CLIENT_ID, or DEMO_USERS=1 in dev-local']
    : []
}

function troublesOfPublic(given: Given): string[] {
  const { DEMO_USERS, LINK_SECRET } = given
  const troubles = troublesOfOrigin('PUBLIC_URL', given)
  if (DEMO_USERS === '1') troubles.push('DEMO_USERS must be off in prod')
  if (LINK_SECRET?.includes(KNOWN_TO_EVERYBODY)) {
    troubles.push('LINK_SECRET is the one for development, which everybody knows')
  }
  return troubles
}

function troublesOfOrigin(name: 'PUBLIC_URL' | 'OPENAI_API_ORIGIN', given: Given): string[] {
  const troubles: string[] = []
  const { protocol, hostname = '' } = addressOf(given[name]) ?? {}
  if (protocol === 'http:') troubles.push(`${name} must be https in prod`)
  if (LOOPBACK.test(hostname)) troubles.push(`${name} must not be a loopback address in prod`)
  return troubles
}

/** Nor a query, nor a user; what is no address at all is told of as that. */
function hasNoPath(text: string): boolean {
  const address = addressOf(text)
  return address === null || address.href === `${address.origin}/`
}

function addressOf(text: string | undefined): URL | null {
  return text !== undefined && URL.canParse(text) ? new URL(text) : null
}
