import type { Plugin } from '@coji/durably'
import type { Config } from '../config'
import type { Log } from '../log'

/** What tells a collector what this process does. */
export interface Telemetry {
  /** Has runs and steps told of. */
  readonly plugin: Plugin
  /** Tells what has not been told yet, unless the collector takes too long. */
  stop(): Promise<void>
}

/** Of which process spans and metrics are. */
export interface Told {
  readonly service: 'api' | 'worker'
  readonly log: Log
}

/** Where no collector is named nothing is told, and nothing that could is loaded. */
export async function startTelemetry({ collector }: Pick<Config, 'collector'>, told: Told): Promise<Telemetry | null> {
  if (collector === null) return null
  const { startSdk } = await import('./sdk')
  return startSdk(told)
}
