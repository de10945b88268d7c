import { type RefObject, useEffect, useRef } from 'react'

/** Takes the focus over when the element in it that had it is gone: else the keyboard would begin at the top again. */
export function useFocusKept(): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null)
  const focused = useRef<Element | null>(null)
  useEffect(() => {
    const note = ({ target }: FocusEvent) => {
      focused.current = target instanceof Element && ref.current?.contains(target) === true ? target : null
    }
    document.addEventListener('focusin', note)
    return () => document.removeEventListener('focusin', note)
  }, [])
  useEffect(() => {
    const isGone = focused.current !== null && !focused.current.isConnected
    if (isGone && document.activeElement === document.body) ref.current?.focus()
  })
  return ref
}
