import { type RefObject, useEffect, useRef } from 'react'

/** Takes the focus over when the element in it that had it is gone: else the keyboard would begin at the top again. */
export function useFocusKept(): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null)
  const focused = useRef<Element | null>(null)
  useEffect(() => {
    const note = ({ target }: FocusEvent) => {
      focused.current = target instanceof Element && ref.current?.contains(target) === true ? target : null
    }
    // A press beside it leaves it, too; what is removed is not pressed.
    const forget = () => {
      focused.current = null
    }
    document.addEventListener('focusin', note)
    document.addEventListener('pointerdown', forget)
    return () => {
      document.removeEventListener('focusin', note)
      document.removeEventListener('pointerdown', forget)
    }
  }, [])
  useEffect(() => {
    const isGone = focused.current !== null && !focused.current.isConnected
    if (isGone && document.activeElement === document.body) ref.current?.focus({ preventScroll: true })
  })
  return ref
}
