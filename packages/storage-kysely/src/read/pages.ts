import type { Rows } from '../dialect'
import type { Row, SqlContext } from '../statement'

/** A list of any length in statements of so many rows; each goes on behind the last row of the one before. */
export async function readPages(
  { stretch }: SqlContext,
  most: number,
  read: (last: Row | undefined, limit: number) => Promise<Rows>,
): Promise<readonly Row[]> {
  const found: Row[] = []
  for (;;) {
    const limit = Math.min(stretch, most - found.length)
    const rows = await read(found.at(-1), limit)
    found.push(...rows)
    if (rows.length < limit || found.length === most) return found
  }
}
