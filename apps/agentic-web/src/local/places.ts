import type { Service } from './compose'
import { freePort } from './free-port'

/** One process of a service. */
export interface Place {
  readonly service: Service
  readonly name: string
  readonly port: number
  readonly env: Readonly<Record<string, string>>
}

const PORTS = ['PORT', 'HEALTH_PORT']

/**
 * Gives each replica a port of its own, since here they share one host, and turns the names of services in addresses into where
 * these are: `http://api:8080` is a list of all of them.
 */
export async function placeAll(services: readonly Service[], databaseUrl: string): Promise<readonly Place[]> {
  const ports = new Map<string, number[]>()
  for (const { name, replicas, publishedPort } of services) {
    const own = publishedPort === null ? [] : [publishedPort]
    while (own.length < replicas) own.push(await freePort())
    ports.set(name, own)
  }
  return services.flatMap((service) =>
    (ports.get(service.name) ?? []).map((port, index) => {
      const here = Object.fromEntries(PORTS.filter((key) => service.environment[key]).map((key) => [key, String(port)]))
      const env = { ...located(service.environment, { ports, databaseUrl }), ...here }
      return { service, name: `${service.name}-${index + 1}`, port, env }
    }),
  )
}

interface Where {
  readonly ports: ReadonlyMap<string, readonly number[]>
  readonly databaseUrl: string
}

function located(environment: Service['environment'], { ports, databaseUrl }: Where): Record<string, string> {
  const entries = Object.entries(environment).map(([key, value]) => {
    if (value.startsWith('postgres://')) return [key, databaseUrl]
    const [, service] = /^http:\/\/([\w-]+):\d+$/.exec(value) ?? []
    const found = service === undefined ? undefined : ports.get(service)
    return [key, found === undefined ? value : found.map((port) => `http://127.0.0.1:${port}`).join(',')]
  })
  return Object.fromEntries(entries)
}
