import { type RefObject, useLayoutEffect, useRef } from 'react'
import type { StepRow } from '../step-timeline'

export interface ChartScrollParams {
  readonly isLive: boolean
  readonly rows: readonly StepRow[]
  readonly executions: number
}

const NEAR_PX = 60
/** So much of what went before the crash is in sight. */
const ROWS_BEFORE = 2

/** Opens where the last execution took over, and then keeps the newest row in sight unless the reader scrolls away. */
export function useChartScroll({ isLive, rows, executions }: ChartScrollParams): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null)
  const before = useRef<number | null>(null)
  const wasLive = useRef(isLive)
  useLayoutEffect(() => {
    const { current } = ref
    // The last row comes together with the end of the run.
    const follows = isLive || wasLive.current
    wasLive.current = isLive
    if (current === null) return
    if (before.current === null && !isLive) openAt(current, firstRowOf(rows, executions))
    const isAtEnd = (before.current ?? 0) - current.scrollTop - current.clientHeight < NEAR_PX
    if (follows && isAtEnd) current.scrollTop = current.scrollHeight
    before.current = current.scrollHeight
  }, [isLive, rows, executions])
  return ref
}

/** The row with which the last execution began; the first one when there was only one execution. */
function firstRowOf(rows: readonly StepRow[], executions: number): number {
  if (executions < 2) return 0
  return rows.findIndex(({ bars }) => bars.some(({ execution }) => execution === executions))
}

function openAt(scroller: HTMLElement, index: number): void {
  const row = scroller.querySelectorAll<HTMLElement>('.chart-row')[Math.max(0, index - ROWS_BEFORE)]
  const head = scroller.querySelector<HTMLElement>('.chart-head')
  if (row !== undefined && head !== null) scroller.scrollTop = row.offsetTop - head.offsetHeight
}
