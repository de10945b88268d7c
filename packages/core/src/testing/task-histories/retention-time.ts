import type { QueueSettings } from './queue-process'

/** How long a queue that is started lets what it does not keep lie. */
export function retentionMs({ keep }: Pick<QueueSettings, 'keep'>): number {
  return Math.min(60_000, Math.max(1000, Math.min(keep.succeeded.age, keep.dead.age) / 10))
}
