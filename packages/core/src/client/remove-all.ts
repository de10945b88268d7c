import type { Engine } from '../engine'

/** Batch after batch until one removes fewer than so many; answers how many went. */
export async function removeAll({ breathe }: Engine, fewest: number, remove: () => Promise<number>): Promise<number> {
  for (let removed = 0; ; ) {
    const some = await remove()
    removed += some
    if (some < fewest) return removed
    await breathe()
  }
}
