import type { RunEntry } from './run-entry'

/** `priority` (high first), `availableAt`, `id`. */
export function claimsBefore({ record: a }: RunEntry, { record: b }: RunEntry): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority
  return a.availableAt === b.availableAt ? a.id < b.id : (a.availableAt ?? '') < (b.availableAt ?? '')
}
