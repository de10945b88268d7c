import { createRequire } from 'node:module'
import type { Page } from 'playwright'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface Axe {
  run(
    context: Document,
    options: { readonly resultTypes: readonly string[]; readonly selectors: boolean },
  ): Promise<{
    readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
  }>
}

/** What axe finds wrong with the page as it stands, contrasts included. */
export async function violationsOf(page: Page): Promise<string[]> {
  const isThere = await page.evaluate(() => 'axe' in window)
  if (!isThere) await page.addScriptTag({ path: AXE })
  return page.evaluate(async () => {
    const axe: Axe = Reflect.get(window, 'axe')
    // What is well is most of it, and nobody asks where it is.
    const { violations } = await axe.run(document, { resultTypes: ['violations'], selectors: false })
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
  })
}
