import type { DueSchedule } from '@coji/durably-core/storage'
import { decodeDefinition, type Definition } from './definition'

/** In words: when it fires next, or why it does not. */
export function explainSchedule({ schedule, openRuns }: DueSchedule): string {
  const definition = decodeDefinition(schedule.definition)
  const what = `Schedule "${schedule.name}" of job "${schedule.jobName}"`
  const past = `So far ${schedule.fired} of its instants fired and ${schedule.missed} did not.`
  if (schedule.pausedBecause !== null) return `${what} is paused: ${schedule.pausedBecause}. ${past}`
  if (schedule.endedAt !== null) return `${what} has ended: there is no instant after ${schedule.firedUntil}. ${past}`
  const when = schedule.nextAt === null ? 'is about to get its first instant' : `fires next at ${schedule.nextAt}`
  const [open] = openRuns
  const held = open === undefined ? '' : ` ${HELD_BACK[schedule.overlap](open.id)}`
  return `${what} ${when}, because ${timingInWords(definition)}.${held} ${past}`
}

const HELD_BACK = {
  allow: () => '',
  skip: (runId: string) => `Held back by run ${runId}: an instant is skipped while that goes on.`,
  queue: (runId: string) => `Run ${runId} goes on: the next one waits for its end.`,
  cancel: (runId: string) => `Run ${runId} goes on: the next one cancels it.`,
} as const

function timingInWords({ timing, end }: Definition): string {
  const until = end === null ? '' : ` until ${end}`
  switch (timing.kind) {
    case 'cron':
      return `it fires at "${timing.cron}" by the clocks of ${timing.zone}${until}`
    case 'every':
      return `it fires every ${timing.ms} ms${until}`
    case 'at':
      return 'it fires once'
  }
}
