import { createDurably, type Durably, type DurablyOptions, type StandardSchema } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { afterEachTest } from '../../../test/leftovers'

const open: Durably[] = []

afterEachTest(async () => {
  for (const durably of open.splice(0)) await durably.close()
})

/** An instance in memory, closed after the test. */
export function instance(options: Partial<DurablyOptions> = {}): Durably {
  const durably = createDurably({ storage: createMemoryStorage(), logger: null, ...options })
  open.push(durably)
  return durably
}

/** A schema that takes everything. */
export const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) },
}
