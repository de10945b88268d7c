import type { Paint } from './paint'

const INDENT = '  '
const GAP = '  '

/** Aligned columns: the first to the left, the others, which are numbers, to the right. */
export function renderTable(header: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string[] {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    INDENT + cells.map((cell, column) => align(cell, widths[column] ?? 0, column)).join(GAP)
  return [paint('dim', line(header)), ...rows.map(line)]
}

function align(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}
