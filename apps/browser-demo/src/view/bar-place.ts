import type { CSSProperties } from 'react'

/** Executions next to each other look different. */
export function toneOf(execution: number): string {
  return execution % 2 === 0 ? 'even' : 'odd'
}

/** From and to are shares of the width; what is too short to be seen is drawn a little longer. */
export function place(from: number, to: number): CSSProperties {
  return { insetInlineStart: `${from * 100}%`, inlineSize: `max(3px, ${(to - from) * 100}%)` }
}
