import { setTimeout as sleep } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { withTelemetry } from '@coji/durably/telemetry'
import { context, diag, DiagLogLevel, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { Log } from '../log'
import type { Telemetry, Told } from './telemetry'

const LAST_WORDS_MS = 2000

/** Address, headers, sampling and the rest are read by the SDK, from the variables that it has for them. */
export function startSdk({ service, log }: Told): Telemetry {
  tellTrouble(log)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  const resource = resourceOf(service)
  const tracerProvider = new BasicTracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  })
  const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() })
  const meterProvider = new MeterProvider({ resource, readers: [reader] })
  trace.setGlobalTracerProvider(tracerProvider)
  metrics.setGlobalMeterProvider(meterProvider)
  return {
    plugin: withTelemetry(),
    async stop() {
      const told = Promise.allSettled([tracerProvider.shutdown(), meterProvider.shutdown()])
      await Promise.race([told, sleep(LAST_WORDS_MS, undefined, { ref: false })])
    },
  }
}

/** What the environment says of it counts more. */
function resourceOf(service: Told['service']) {
  const own = resourceFromAttributes({
    'service.namespace': 'agentic-web',
    'service.name': service,
    'service.instance.id': randomUUID(),
  })
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }))
}

/** A collector that is away is no reason to do anything but say so. */
function tellTrouble(log: Log): void {
  const say = (trouble: string) => log('warn', 'telemetry', { trouble })
  const silent = () => {}
  diag.setLogger(
    { error: say, warn: say, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN },
  )
}
