import { settingsFrom } from './settings'

/** Names this tab, until it is loaded again. */
export const TAB = `tab ${Math.random()}`

/** Each database has its own. */
const PREFIX = `witness of ${settingsFrom(new URL(location.href)).file}: `
let sightings = 0

/** Writes down that a body begins: at once, and not in the database, which cannot testify for itself. */
export function testify(runId: string, stepName: string): void {
  sightings += 1
  localStorage.setItem(`${PREFIX}${TAB} ${sightings}`, `${runId}/${stepName}`)
}

/** Every body that began in any tab on this database, once for each time. */
export function readWitness(): string[] {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => localStorage.getItem(key) ?? '')
}
