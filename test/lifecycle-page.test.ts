import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GUARDS, LIFECYCLE } from '@coji/durably-core/storage'
import { expect, it } from 'vitest'
import { ROOT } from './root'

const page = readFileSync(join(ROOT, 'docs', 'lifecycle.md'), 'utf8')

function list(statuses: readonly string[]): string {
  return statuses.length === 0 ? '–' : statuses.map((status) => `\`${status}\``).join(', ')
}

it('shows every transition as the code has it', () => {
  const rows = Object.entries(LIFECYCLE).map(
    ([name, { from, to, by, guards }]) => `| ${name} | ${list(from)} | ${list(to)} | ${by} | ${guards.join(', ')} |`,
  )
  const table = ['| transition | from | to | by | guards |', '|---|---|---|---|---|', ...rows].join('\n')
  expect(page).toContain(table)
})

it('explains every guard in the words of the code', () => {
  const table = Object.entries(GUARDS)
    .map(([name, words]) => `| ${name} | ${words} |`)
    .join('\n')
  expect(page).toContain(table)
})
