import { formatSeconds } from './numbers'
import type { Screen } from './screen'
import { renderTable } from './table'
import type { Verdict } from './verdict'

export interface JobReport {
  readonly label: string
  readonly verdict: Verdict
  readonly ms: number
  /** How the result differs from that of an independent computation. */
  readonly problems: readonly string[]
}

const HEADER = ['', 'steps', 'ran once', 'skipped', 'ran again', 'time']
const SHOWN_PROBLEMS = 5

/** Prints the table and the checks; whether all of them hold. */
export function printReport(screen: Screen, reports: readonly JobReport[]): boolean {
  const { paint } = screen
  const rows = reports.map(({ label, verdict, ms }) => [
    label,
    ...[verdict.steps, verdict.ranOnce, verdict.skipped, verdict.ranAgain].map(String),
    formatSeconds(ms),
  ])
  for (const line of renderTable(HEADER, rows, paint)) screen.line(line)
  screen.line()
  for (const { label, problems } of reports) {
    printCheck(screen, `${label}: the result equals an independent one`, problems)
  }
  const faults = reports.flatMap(({ verdict }) => verdict.faults)
  printCheck(screen, 'no step ran again once it was recorded', faults)
  return faults.length === 0 && reports.every(({ problems }) => problems.length === 0)
}

function printCheck(screen: Screen, claim: string, problems: readonly string[]): void {
  const { paint } = screen
  const mark = problems.length === 0 ? paint('green', '✓') : paint('red', '✗')
  screen.line(`  ${mark} ${claim}`)
  for (const problem of problems.slice(0, SHOWN_PROBLEMS)) screen.line(`    ${problem}`)
  if (problems.length > SHOWN_PROBLEMS) screen.line(`    and ${problems.length - SHOWN_PROBLEMS} more`)
}
