import * as core from '@coji/durably-core'
import { describe, expect, it } from 'vitest'
import { committedReference, reference } from '../scripts/reference.mjs'

describe('the reference', () => {
  const { text, missing } = reference()

  it('says of every option, event and error what it is for', () => {
    expect(missing).toEqual([])
  })

  it('is what the doc comments say: run `npm run reference`', () => {
    expect(committedReference()).toBe(text)
  })

  it('has every class of errors that core exports', () => {
    const classes = Object.keys(core).filter((name) => name.endsWith('Error'))
    expect(classes.filter((name) => !text.includes(`| \`${name}\` |`))).toEqual([])
  })

  it.each([
    '| `idempotencyKey` | `string` |',
    '| `connectionString` (one of these) | `string` |',
    '| `run:fail` | `runId`, `jobName`, `error`, `failedStepName` |',
    '| `dead` | `taskId`, `taskType`, `attempts`, `error` |',
    '| `ExecutionAbortedError` | `CANCELLED` `TIMEOUT` `LEASE_LOST` `SHUTDOWN` `ENDED` |',
    '| `STORAGE_FULL` |',
  ])('has %s', (row) => {
    expect(text).toContain(row)
  })
})
