import type { Durably } from '@coji/durably-core'

const HOUR_MS = 3_600_000

/** Thirty days as they may be: more by day than by night, some trouble two days ago and in the last hours. */
export async function countHours({ storage }: Durably): Promise<void> {
  const last = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const rows = Array.from({ length: 30 * 24 }, (_, back) => {
    const at = last - back * HOUR_MS
    const byDay = 1 - Math.cos((new Date(at).getUTCHours() / 24) * 2 * Math.PI)
    const isTrouble = (back > 44 && back < 50) || back < 3
    const completed = Math.round(40 + 160 * byDay + ((back * 37) % 23))
    const failed = isTrouble ? 31 : (back * 13) % 3
    const counts = {
      started: completed + failed,
      completed,
      failed,
      timedOut: back % 7 === 0 ? 1 : 0,
      cancelled: back % 5,
    }
    const slower = isTrouble ? 6 : 0
    const durations = { [36 + slower]: completed, [44 + slower]: Math.ceil(completed / 8) }
    const waits = { 18: completed, [26 + 2 * slower]: Math.ceil(completed / 9) }
    return { hour: new Date(at).toISOString(), tenant: null, jobName: null, ...counts, durations, waits }
  })
  const to = { finishedAt: new Date().toISOString(), runId: 'the last' }
  await storage.statistics?.fold({ from: null, to, token: 'counted', rows })
}
