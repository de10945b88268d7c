import type { Engine } from '../engine'

/** Batch after batch until one is not full; answers how many went. */
export async function removeAll({ breathe }: Engine, batch: number, remove: () => Promise<number>): Promise<number> {
  for (let removed = 0; ; ) {
    const some = await remove()
    removed += some
    if (some < batch) return removed
    await breathe()
  }
}
