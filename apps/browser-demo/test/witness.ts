import type { BrowserContext, Page } from 'playwright'

/** A body of the import that began: it opened its part for writing. */
export interface BodyStart {
  readonly page: Page
  readonly part: number
}

const PART = /orders-(\d{5})\.jsonl$/

/**
 * Sees the bodies of the import start, without a hand in the app: each writes a file of its own. A body goes on when
 * this process knows of it: what dies with a tab or a browser cannot be the witness of a step that was recorded.
 */
export async function witnessBodies(context: BrowserContext, onStart: (start: BodyStart) => void): Promise<void> {
  await context.exposeBinding('witnessWrite', ({ page }, name: string) => {
    const part = PART.exec(name)?.[1]
    if (part !== undefined) onStart({ page, part: Number(part) })
  })
  await context.addInitScript(() => {
    const { createWritable } = FileSystemFileHandle.prototype
    FileSystemFileHandle.prototype.createWritable = async function (this: FileSystemFileHandle, options) {
      const witness: (name: string) => Promise<void> = Reflect.get(window, 'witnessWrite')
      await witness(this.name)
      return createWritable.call(this, options)
    }
  })
}
