import { describe, expect, test } from 'vitest'
import { ansi, choosePaint, plain } from '../src/paint'
import { renderProgressBar } from '../src/progress-bar'
import { printReport } from '../src/report'
import { createScreen } from '../src/screen'
import { renderTable } from '../src/table'

const HIDE = '\u001b[?25l'
const SHOW = '\u001b[?25h'

function recorder() {
  const written: string[] = []
  const output = { columns: 60, write: (text: string) => written.push(text) }
  return { output, text: () => written.join('') }
}

describe('renderProgressBar', () => {
  const bar = (fraction: number, width: number) =>
    renderProgressBar({ label: 'import CSV', fraction, message: '1,200,000 rows', width, paint: plain })

  test('shows how far it is', () => {
    expect(bar(0, 60)).toBe('  import CSV   ░░░░░░░░░░░░░░░░░░░   0 %  1,200,000 rows')
    expect(bar(0.5, 60)).toBe('  import CSV   ██████████░░░░░░░░░  50 %  1,200,000 rows')
    expect(bar(1, 60)).toBe('  import CSV   ███████████████████ 100 %  1,200,000 rows')
  })

  test('never fills the last column, and never shows 100 % before the end', () => {
    for (let width = 20; width < 200; width++) {
      for (const fraction of [0, 0.333, 0.999, 1]) expect(bar(fraction, width).length).toBeLessThan(width)
    }
    expect(bar(0.999, 80)).toContain(' 99 %')
  })
})

describe('renderTable', () => {
  test('aligns words to the left and numbers to the right', () => {
    const rows = [
      ['import CSV', '101', '3.4 s'],
      ['index', '33', '12.0 s'],
    ]
    expect(renderTable(['', 'steps', 'time'], rows, plain)).toEqual([
      '              steps    time',
      '  import CSV    101   3.4 s',
      '  index          33  12.0 s',
    ])
  })
})

describe('choosePaint', () => {
  const choose = (environment: Record<string, string>, isTerminal = true, wanted = true) =>
    choosePaint({ wanted, isTerminal, environment })

  test('colours a terminal, unless someone objects', () => {
    expect(choose({})).toBe(ansi)
    expect(choose({ NO_COLOR: '' })).toBe(ansi)
    expect(choose({ NO_COLOR: '1' })).toBe(plain)
    expect(choose({ TERM: 'dumb' })).toBe(plain)
    expect(choose({}, false)).toBe(plain)
    expect(choose({}, true, false)).toBe(plain)
  })
})

describe('createScreen', () => {
  const half = { label: 'job', fraction: 0.5, message: 'half' }

  test('hides the cursor while a line moves, and gives it back once', () => {
    const { output, text } = recorder()
    const screen = createScreen({ output, paint: plain, isLive: true })
    screen.progress(half)
    expect(text()).toContain(HIDE)
    screen.close()
    screen.close()
    expect(text().endsWith(`\r\u001b[2K${SHOW}`)).toBe(true)
    expect(text().split(SHOW)).toHaveLength(2)
  })

  test('touches no cursor when nothing moved', () => {
    const { output, text } = recorder()
    const screen = createScreen({ output, paint: plain, isLive: true })
    screen.line('hello')
    screen.close()
    expect(text()).toBe('hello\n')
  })

  test('elsewhere prints lines, a few for each job, and no escape', () => {
    const { output, text } = recorder()
    const screen = createScreen({ output, paint: plain, isLive: false })
    for (let step = 0; step <= 100; step++) screen.progress({ ...half, fraction: step / 100 })
    screen.settle()
    screen.close()
    expect(text()).not.toContain('\u001b')
    expect([...text().matchAll(/ (\d+) %/g)].map((match) => Number(match[1]))).toEqual([25, 50, 75, 100])
  })
})

describe('printReport', () => {
  const verdict = { steps: 101, ranOnce: 100, skipped: 46, ranAgain: 1, faults: [] }
  const good = { label: 'search index', verdict, ms: 12_345, problems: [] }

  function print(report: Parameters<typeof printReport>[1][number]) {
    const { output, text } = recorder()
    const holds = printReport(createScreen({ output, paint: plain, isLive: false }), [report])
    return { holds, text: text() }
  }

  test('holds when everything is as it should be, in 60 columns', () => {
    const { holds, text } = print(good)
    expect(holds).toBe(true)
    expect(text).not.toContain('✗')
    for (const line of text.split('\n')) expect(line.length).toBeLessThan(60)
  })

  test('does not hold with a wrong result or a step that ran again', () => {
    expect(print({ ...good, problems: ['rows: 1 instead of 2'] })).toMatchObject({ holds: false })
    const faults = Array.from({ length: 9 }, (_, step) => `"${step}" ran again although it was recorded`)
    const { holds, text } = print({ ...good, verdict: { ...verdict, faults } })
    expect(holds).toBe(false)
    expect(text).toContain('and 4 more')
  })
})
