import type { Page } from 'playwright'

interface Focused {
  readonly name: string
  readonly hasRing: boolean
}

/** More stops than the page has. */
const MAX_STOPS = 80

/** Presses Tab until the focus is on what has this name; every stop on the way has to be visible as such. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  const stops: string[] = []
  while (stops.length < MAX_STOPS) {
    await page.keyboard.press('Tab')
    const focused = await focusedElement(page)
    stops.push(focused.name)
    if (!focused.hasRing) throw new Error(`The focus cannot be seen on "${focused.name}".`)
    if (name.test(focused.name)) return
  }
  throw new Error(`Tab does not reach ${String(name)}. It stops at: ${[...new Set(stops)].join(' | ')}`)
}

function focusedElement(page: Page): Promise<Focused> {
  return page.evaluate(() => {
    const element = document.activeElement
    if (element === null || element === document.body) return { name: '(page)', hasRing: true }
    const label = element instanceof HTMLInputElement ? element.labels?.[0]?.textContent : undefined
    const name = element.getAttribute('aria-label') ?? label ?? element.textContent ?? ''
    // A control may be drawn by its label.
    const drawn = [element, element.parentElement, element.nextElementSibling].filter((each) => each !== null)
    const hasRing = drawn.some((each) => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each)
      return (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none'
    })
    return { name: name.replace(/\s+/g, ' ').trim(), hasRing }
  })
}
