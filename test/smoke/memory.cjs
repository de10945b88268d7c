const { createDurably } = require('@coji/durably-core')
const { createMemoryStorage } = require('@coji/durably-core/memory')
const { z } = require('zod')

async function main() {
  const durably = createDurably({ storage: createMemoryStorage() })
  const double = durably.defineJob({ name: 'double', input: z.object({ n: z.number() }) }, (ctx, { n }) =>
    ctx.run('twice', () => n * 2),
  )
  await durably.migrate()
  durably.start()
  const { output } = await double.triggerAndWait({ n: 21 })
  await durably.stop()
  console.log(`${process.version} ${output}`)
}

main()
