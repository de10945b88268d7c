import { appendFileSync } from 'node:fs'
import { createDurably, type StandardSchema } from '@coji/durably-core'
import { openJsonLinesStorage } from './json-lines-storage.ts'

const [file = 'runs.jsonl', witness = 'witness.txt'] = process.argv.slice(2)

/** Zod, Valibot and ArkType make such objects; this one takes everything. */
const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'example', validate: (value) => ({ value }) },
}

const workerId = 'the-only-one'
const durably = createDurably({ storage: openJsonLinesStorage(file), workerId })

const sum = durably.defineJob({ name: 'sum', input: anything }, async (ctx) => {
  let total = 0
  for (let n = 1; n <= 2000; n++) {
    total += await ctx.run(`add ${n}`, () => {
      appendFileSync(witness, `${n}\n`)
      return n
    })
  }
  return total
})

await durably.migrate()
// The lock on the file says that no other process lives, so there is no need to wait for the lease to run out.
const recovered = await durably.recover({ workerId })
const { id } = await sum.trigger(null, { idempotencyKey: 'once' })
console.log(recovered > 0 ? `going on with run ${id}` : `run ${id}`)
await durably.runUntilIdle()
const run = await sum.getRun(id)
console.log(`${run?.status}: ${run?.output}`)
await durably.close()
