import type { Page } from 'playwright'

/**
 * How much each of these stands out from the corner of what is around them, as painted: in forced colours no style tells.
 * By the pixel of it that does most.
 */
export async function paintedContrasts(page: Page, around: string, selector: string): Promise<number[]> {
  const element = page.locator(around)
  const picture = (await element.screenshot({ animations: 'disabled' })).toString('base64')
  return element.evaluate(
    async (outer, { base64, inner }) => {
      const image = new Image()
      image.src = `data:image/png;base64,${base64}`
      await image.decode()
      const canvas = document.createElement('canvas')
      canvas.width = image.width
      canvas.height = image.height
      const painter = canvas.getContext('2d', { willReadFrequently: true })
      if (painter === null) throw new Error('There is no canvas.')
      painter.drawImage(image, 0, 0)
      const box = outer.getBoundingClientRect()
      const scale = image.width / box.width
      const luminances = ({ x, y, width, height }: Pick<DOMRect, 'x' | 'y' | 'width' | 'height'>): number[] => {
        const [w, h] = [Math.max(1, Math.floor(width * scale)), Math.max(1, Math.floor(height * scale))]
        const { data } = painter.getImageData(Math.round((x - box.x) * scale), Math.round((y - box.y) * scale), w, h)
        const linear = (value = 0) => {
          const share = value / 255
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
        }
        return Array.from({ length: w * h }, (_, pixel) => {
          const [r, g, b] = data.subarray(pixel * 4, pixel * 4 + 3)
          return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
        })
      }
      const [ground = 0] = luminances({ x: box.x + 4, y: box.y + 4, width: 1, height: 1 })
      return [...outer.querySelectorAll(inner)].map((each) => {
        const contrasts = luminances(each.getBoundingClientRect()).map(
          (other) => (Math.max(other, ground) + 0.05) / (Math.min(other, ground) + 0.05),
        )
        return Math.max(...contrasts)
      })
    },
    { base64: picture, inner: selector },
  )
}
