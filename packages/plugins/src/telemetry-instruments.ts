import type { Meter } from '@opentelemetry/api'

export type Instruments = ReturnType<typeof createInstruments>

/** Jobs are few; steps may have as many names as there are runs, so none is in a metric. */
export function createInstruments(meter: Meter) {
  return {
    ended: meter.createCounter('durably.runs.ended', { unit: '{run}', description: 'Runs that ended, by status.' }),
    active: meter.createUpDownCounter('durably.runs.active', {
      unit: '{run}',
      description: 'Runs that this process executes.',
    }),
    queueLatency: meter.createHistogram('durably.run.queue_latency', {
      unit: 's',
      description: 'From being due to the first start.',
    }),
    stepDuration: meter.createHistogram('durably.step.duration', {
      unit: 's',
      description: 'How long bodies of steps took.',
    }),
  }
}
