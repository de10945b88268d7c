import { parse } from 'yaml'
import { z } from 'zod'
import type { Env } from '../config'

const text = z.union([z.string(), z.number()]).transform(String)

const serviceSchema = z.object({
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), text).default({}),
  ports: z.array(text).default([]),
  deploy: z.object({ replicas: z.number() }).default({ replicas: 1 }),
  healthcheck: z.object({ test: z.array(z.string()) }),
})

const composeSchema = z.object({ services: z.record(z.string(), serviceSchema) })

/** A service as docker-compose.yml has it. */
export interface Service {
  readonly name: string
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Where it is reached from outside, if it is. */
  readonly publishedPort: number | null
  readonly replicas: number
  /** What says that it is ready. */
  readonly check: readonly string[]
}

/** Reads docker-compose.yml as Docker would, as far as it is used there. */
export function readCompose(yaml: string, env: Env): readonly Service[] {
  const { services } = composeSchema.parse(interpolated(parse(yaml, { merge: true }), env))
  return Object.entries(services).map(([name, { command = [], environment, ports, deploy, healthcheck }]) => {
    const published = /^(\d+):\d+$/.exec(ports[0] ?? '')?.[1]
    return {
      name,
      command,
      environment,
      publishedPort: published === undefined ? null : Number(published),
      replicas: deploy.replicas,
      check: healthcheck.test,
    }
  })
}

function interpolated(value: unknown, env: Env): unknown {
  if (typeof value === 'string') return interpolate(value, env)
  if (Array.isArray(value)) return value.map((each) => interpolated(each, env))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, interpolated(each, env)]))
}

/** `${NAME:-what else}`, from within outwards. */
export function interpolate(given: string, env: Env): string {
  let now = given
  for (let before = ''; before !== now; ) {
    before = now
    now = now.replace(/\$\{(\w+):-([^${}]*)\}/g, (_all, name: string, preset: string) => env[name] || preset)
  }
  return now
}
