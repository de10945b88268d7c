import { defineJob } from '@coji/durably-core'
import { z } from 'zod'

const gates = new Map<string, PromiseWithResolvers>()

interface PromiseWithResolvers {
  readonly opened: Promise<void>
  readonly open: () => void
}

/** Bodies wait here until a test lets them go on. */
export function gate(name: string): PromiseWithResolvers {
  const known = gates.get(name)
  if (known !== undefined) return known
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const created = { opened, open }
  gates.set(name, created)
  return created
}

export const importOrders = defineJob(
  { name: 'import-orders', input: z.object({ file: z.string(), gate: z.string().optional() }) },
  async (ctx, { file, gate: name }) => {
    const rows = await ctx.run('read the file', async (step) => {
      step.log.info('reading', { file })
      return { rows: 1200 }
    })
    for (let part = 1; part <= 4; part++) {
      await ctx.run(`write part ${part}`, async (step) => {
        step.progress(part, 4, `part ${part} of 4`)
        if (part === 3) step.log.warn('two rows have no customer', { rows: [811, 902] })
        if (part === 3 && name !== undefined) await gate(name).opened
        return { written: rows.rows / 4 }
      })
    }
    return { written: rows.rows }
  },
)

export const charge = defineJob(
  { name: 'charge-card', input: z.object({ amount: z.number() }) },
  async (ctx, { amount }) => {
    await ctx.run('look up the customer', () => ({ customer: 'c_4711' }))
    await ctx.run('charge', (step) => {
      step.log.error('declined', { reason: 'insufficient_funds' })
      throw Object.assign(new Error(`The card was declined: ${amount} EUR is more than its limit.`), {
        code: 'card_declined',
      })
    })
  },
)

export const approve = defineJob(
  { name: 'publish-report', input: z.object({ title: z.string() }) },
  async (ctx, { title }) => {
    const text = await ctx.stream('write', async (emit) => {
      for (const word of ['Revenue ', 'grew ', 'by ', '4 %.']) await emit(word)
      return title
    })
    const approval = await ctx.waitFor('approval')
    return { text, approval }
  },
)

export const shaky = defineJob(
  { name: 'sync-crm', input: z.object({ account: z.string() }), retry: { maxAttempts: 5, delay: 3_600_000 } },
  async (ctx) => {
    await ctx.run('fetch', () => {
      throw new Error('The CRM answered 503.')
    })
  },
)

export const JOBS = { importOrders, charge, approve, shaky }
