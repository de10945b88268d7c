import { type RefObject, useEffect, useRef } from 'react'

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }

/** In the list the arrows, or `j` and `k`, go from run to run; `x` chooses one. */
export function useListKeys(): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const list = ref.current
    const onKey = (event: KeyboardEvent) => list !== null && moveIn(list, event)
    list?.addEventListener('keydown', onKey)
    return () => list?.removeEventListener('keydown', onKey)
  }, [])
  return ref
}

function moveIn(list: HTMLElement, event: KeyboardEvent): void {
  const row = event.target instanceof HTMLElement ? event.target.closest('.run-row') : null
  if (row === null || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === 'x') row.querySelector<HTMLInputElement>('input[type=checkbox]')?.click()
  const step = STEPS[event.key]
  if (step === undefined) return
  event.preventDefault()
  const rows = [...list.querySelectorAll('.run-row:not(.is-head)')]
  rows[rows.indexOf(row) + step]?.querySelector<HTMLElement>('.run-link')?.focus()
}
