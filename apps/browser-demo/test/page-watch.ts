import type { Durably } from '@coji/durably'
import type { Page } from 'playwright'

/** Runs in the page: looks at it after every change of it, and keeps what should never be seen. */
function watch(): void {
  const faults = new Set<string>()
  Reflect.set(window, 'faults', faults)
  const text = (selector: string) => document.querySelector(selector)?.textContent ?? null
  let rows: readonly string[] = []
  let runId: string | null = null

  function lookAtRows(): void {
    const now = [...document.querySelectorAll('.step-name')].map(({ textContent }) => textContent ?? '')
    if (runId === location.hash) {
      for (const row of rows) if (!now.includes(row)) faults.add(`The row of "${row}" was gone.`)
    }
    runId = location.hash
    rows = now
  }

  function lookAtStatus(): void {
    const inList = text('.run-item[aria-current] .chip')
    const inDetail = text('.run-title .chip')
    if (inList === null || inDetail === null) return
    if (inList !== inDetail) faults.add(`The list says ${inList}, the detail ${inDetail}.`)
    const canCancel = [...document.querySelectorAll('.run-actions button')].some(
      (each) => each.textContent === 'Cancel',
    )
    if (canCancel && !['running', 'waiting'].includes(inDetail)) faults.add(`A ${inDetail} run can be cancelled.`)
    const isRunning = document.querySelector('.step-kind.running') !== null
    const isCut = document.querySelector('.step-kind.cut') !== null
    if (isRunning && inDetail === 'completed') faults.add('A step runs in a completed run.')
    if (isCut && ['running', 'completed'].includes(inDetail))
      faults.add(`A step of a ${inDetail} run is shown as cut off.`)
  }

  function lookAtWorker(): void {
    const durably: Durably | undefined = Reflect.get(window, 'durably')
    const says = text('.badge .on-wide')
    if (says === 'This tab runs the jobs' && durably?.health().worker !== 'running') {
      faults.add(`The page says "${says}", and its worker is ${durably?.health().worker}.`)
    }
    const canKill = document.querySelector('.kill:not(:disabled)') !== null
    if (canKill && says !== 'This tab runs the jobs')
      faults.add(`The page says "${says}", and offers to kill its worker.`)
  }

  new MutationObserver(() => {
    lookAtRows()
    lookAtStatus()
    lookAtWorker()
  }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
}

/** Watches what the page shows from now on, and after every load. */
export async function watchPage(page: Page): Promise<void> {
  await page.addInitScript(watch)
  await page.evaluate(watch)
}

/** What the page showed since its load and never should. */
export function faultsOf(page: Page): Promise<string[]> {
  return page.evaluate(() => [...(Reflect.get(window, 'faults') as Set<string>)])
}
