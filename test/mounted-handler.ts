import { createDurablyClient } from '@coji/durably-server/client'
import { expect } from 'vitest'
import { described, expectAllDescribed } from '../packages/server/test/described'

export { expectAllDescribed }

/** A client whose answers are looked at; `expectAllDescribed()` fails when one was not as the OpenAPI document says. */
export function describedClient(url: string, headers: Readonly<Record<string, string>> = {}) {
  return createDurablyClient({ url, headers, fetch: described(fetch, new URL(url).pathname) })
}

/** A job that waits for a signal, at whose end its value is part of the output. */
export interface AskingJob {
  readonly jobName: string
  readonly payload: unknown
  readonly signalName: string
  readonly value: unknown
  readonly output: unknown
}

/**
 * What a handler has to carry wherever it is mounted: bodies and answers, a stream of events that ends with its run, and
 * an answer of 404. A worker is at work behind it. One answer that is not as the OpenAPI document says fails it.
 */
export async function seeRunThrough(url: string, job: AskingJob): Promise<void> {
  const client = describedClient(url)
  const { id } = await client.trigger(job.jobName, job.payload)
  const events: string[] = []
  for await (const { type } of client.subscribe(id)) {
    events.push(type)
    if (type === 'run:suspend') await client.signal(id, job.signalName, job.value)
  }
  expect(events.at(-1)).toBe('run:complete')
  expect(await client.getRun(id)).toMatchObject({ payload: job.payload, output: job.output })
  expect(await client.getRun('none')).toBeNull()
  await client.deleteRun(id)
  expect(await client.getRun(id)).toBeNull()
  expectAllDescribed()
}
