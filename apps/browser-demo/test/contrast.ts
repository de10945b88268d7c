import type { Page } from 'playwright'

export interface ReadText {
  /** Of a bar: how it is drawn. */
  readonly text: string
  readonly contrast: number
  /** From 24 px, or 18.66 px when bold: 3 is enough there, and for bars. */
  readonly isLarge: boolean
}

/** Every text and bar on the screen with its contrast to what is behind it, as WCAG 2 computes it. */
export function contrasts(page: Page): Promise<ReadText[]> {
  return page.evaluate(() => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 1
    const painter = canvas.getContext('2d', { willReadFrequently: true })
    if (painter === null) throw new Error('There is no canvas.')
    /** Painted one over the other, as the screen does; any notation of a colour will do. */
    const paint = (colours: readonly string[]): number[] => {
      for (const colour of ['white', ...colours]) {
        painter.fillStyle = colour
        painter.fillRect(0, 0, 1, 1)
      }
      return [...painter.getImageData(0, 0, 1, 1).data.slice(0, 3)]
    }
    const luminance = (rgb: readonly number[]): number => {
      const [r = 0, g = 0, b = 0] = rgb.map((value) => {
        const share = value / 255
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const behind = (element: Element): string[] => {
      const above = element.parentElement === null ? [] : behind(element.parentElement)
      return [...above, getComputedStyle(element).backgroundColor]
    }
    const ownText = (element: Element): string =>
      [...element.childNodes]
        .filter((node) => node.nodeType === Node.TEXT_NODE)
        .map((node) => node.textContent)
        .join('')
        .trim()
    const contrastOf = (element: Element, colour: string): number => {
      const under = behind(element)
      const [dark = 0, light = 0] = [luminance(paint(under)), luminance(paint([...under, colour]))].sort(
        (a, b) => a - b,
      )
      return (light + 0.05) / (dark + 0.05)
    }
    const bars = [...document.querySelectorAll('.bar, .overview-bars path')].map((bar) => {
      const { backgroundColor, borderColor, borderStyle, fill, stroke } = getComputedStyle(bar)
      const drawn = bar instanceof SVGElement ? [fill, stroke] : [backgroundColor, borderColor]
      const isOutlined = bar instanceof SVGElement ? stroke !== 'none' : borderStyle !== 'none'
      const place = bar.parentElement ?? bar
      return { text: bar.outerHTML, contrast: contrastOf(place, drawn[isOutlined ? 1 : 0] ?? ''), isLarge: true }
    })
    const texts = [...document.body.querySelectorAll<HTMLElement>('*')]
      .filter((element) => ownText(element) !== '' && element.checkVisibility() && !element.matches(':disabled'))
      .map((element) => {
        const style = getComputedStyle(element)
        const size = Number.parseFloat(style.fontSize)
        const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
        return { text: ownText(element).slice(0, 60), contrast: contrastOf(element, style.color), isLarge }
      })
    return [...texts, ...bars]
  })
}
