import { createDurably } from '@coji/durably'
import { LibsqlDialect } from '@libsql/kysely-libsql'
import { z } from 'zod'

async function main() {
  const durably = createDurably({ dialect: new LibsqlDialect({ url: `file:${process.argv[2]}` }) })
  const double = durably.defineJob({ name: 'double', input: z.object({ n: z.number() }) }, (ctx, { n }) =>
    ctx.run('twice', () => n * 2),
  )
  await durably.migrate()
  durably.start()
  const { output } = await double.triggerAndWait({ n: 21 })
  await durably.close()
  console.log(`${process.version} ${output}`)
}

main()
