import type { ServedSchedule } from '@coji/durably-server/client'
import { formatDuration, formatMoment } from '../format'

/** When a schedule fires, as people say it. */
export function timingWords(timing: ServedSchedule['timing']): string {
  if (timing.kind === 'every') return `every ${formatDuration(timing.ms)}`
  return timing.kind === 'at' ? `once, at ${formatMoment(timing.at)}` : `${timing.cron} (${timing.zone})`
}
