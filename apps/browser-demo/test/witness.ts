import type { BrowserContext, Page } from 'playwright'
import { expect } from 'vitest'

/** A body of the import that began: it opened its part for writing. */
export interface BodyStart {
  readonly page: Page
  readonly part: number
}

export interface Witness {
  readonly seen: readonly BodyStart[]
  watch(context: BrowserContext): Promise<void>
  /** Resolves when the body of this part has begun in this page. */
  began(start: BodyStart): Promise<void>
  /** The body of this part or a later one begins in this page, and gets no further until it is let go. */
  hold(start: BodyStart): () => void
  letAllGo(): void
}

interface Hold extends BodyStart {
  readonly ended: Promise<void>
  readonly letGo: () => void
}

const PART = /orders-(\d{5})\.jsonl$/

/**
 * Sees the bodies of the import start, without a hand in the app: each writes a file of its own. A body goes on when
 * this process knows of it: what dies with a tab or a browser cannot be the witness of a step that was recorded.
 */
export function createWitness(): Witness {
  const seen: BodyStart[] = []
  const holds = new Set<Hold>()
  const isIn = (starts: readonly BodyStart[], { page, part }: BodyStart) =>
    starts.some((start) => start.page === page && start.part === part)

  async function onWrite({ page }: { readonly page: Page }, name: string): Promise<void> {
    const part = PART.exec(name)?.[1]
    if (part === undefined) return
    const start = { page, part: Number(part) }
    seen.push(start)
    const hold = [...holds].find((one) => one.page === page && one.part <= start.part)
    if (hold !== undefined) await Promise.race([hold.ended, page.waitForEvent('close', { timeout: 0 })])
  }

  return {
    seen,
    async watch(context) {
      await context.exposeBinding('witnessWrite', onWrite)
      await context.addInitScript(askBeforeWriting)
    },
    began: (start) => expect.poll(() => isIn(seen, start), { interval: 5 }).toBe(true),
    hold(start) {
      let end = () => {}
      const ended = new Promise<void>((resolve) => {
        end = resolve
      })
      const letGo = () => {
        holds.delete(hold)
        end()
      }
      const hold: Hold = { ...start, ended, letGo }
      holds.add(hold)
      return letGo
    },
    letAllGo() {
      for (const { letGo } of holds) letGo()
    },
  }
}

/** Runs in the page. */
function askBeforeWriting(): void {
  const { createWritable } = FileSystemFileHandle.prototype
  FileSystemFileHandle.prototype.createWritable = async function (this: FileSystemFileHandle, options) {
    const witness: (name: string) => Promise<void> = Reflect.get(window, 'witnessWrite')
    await witness(this.name)
    return createWritable.call(this, options)
  }
}
