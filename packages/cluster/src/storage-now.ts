import type { Instant, ScheduleStorage } from '@coji/durably-core/storage'

/** By the clock that schedules fire by: that of this process may be wrong. */
export async function storageNow(storage: ScheduleStorage): Promise<Instant> {
  return (await storage.due(0)).now
}
