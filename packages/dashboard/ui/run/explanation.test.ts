import { expect, it } from 'vitest'
import { partsOf } from './explanation'

const run = { id: '01JQZ5K3V9N8M7P6R5T4S3W2X1', jobName: 'import' }
const holder = '01JQZ5K3V9N8M7P6R5T4S3W2X2'

it('links the runs that are named, and turns instants into times', () => {
  const text = `Run ${run.id} of job "import" waits for its concurrency key "k", which ${holder} has since 2026-01-02T03:04:05.678Z.`
  expect(partsOf(text, run).map(({ kind, text: part }) => [kind, part])).toEqual([
    ['text', 'It waits for its concurrency key "k", which '],
    ['run', holder],
    ['text', ' has since '],
    ['instant', '2026-01-02T03:04:05.678Z'],
    ['text', '.'],
  ])
})

it('takes neither a worker nor the run itself for another run', () => {
  const text = `It is on worker ${holder}; durably.unpark("${run.id}") lets it go on.`
  expect(partsOf(text, run).every(({ kind }) => kind === 'text')).toBe(true)
})

it('names the buttons of the page where the engine names its calls', () => {
  const words = (explanation: string) =>
    partsOf(explanation, run)
      .map(({ text }) => text)
      .join('')
  const parked = `Run ${run.id} of job "import" is parked: Step "x" changed. durably.unpark("${run.id}") lets it go on, durably.failParked("${run.id}") ends it.`
  expect(words(parked)).toBe(
    'It is parked: Step "x" changed. “Let it go on” is for when that is mended, “End as failed” ends it.',
  )
  const waiting = `It waits for "child". Its child ${holder} is parked: durably.explain("${holder}") says why.`
  expect(words(waiting)).toBe(`It waits for "child". Its child ${holder} is parked: its page says why.`)
})
