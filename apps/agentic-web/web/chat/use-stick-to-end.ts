import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

const CLOSE_PX = 80

/** Keeps the end in sight while more comes, unless somebody has scrolled away from it. */
export function useStickToEnd(): {
  readonly ref: RefObject<HTMLElement | null>
  readonly isAway: boolean
  toEnd(): void
} {
  const ref = useRef<HTMLElement>(null)
  const isStuck = useRef(true)
  const [isAway, setIsAway] = useState(false)

  const toEnd = useCallback(() => {
    isStuck.current = true
    setIsAway(false)
    const scroller = ref.current
    scroller?.scrollTo({ top: scroller.scrollHeight })
  }, [])

  useEffect(() => {
    const scroller = ref.current
    const content = scroller?.firstElementChild
    if (scroller == null || content == null) return
    const distance = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
    let height = 0
    // What the page itself moves, since something grew or the window turned, is nobody's wish to be elsewhere.
    const onScroll = () => {
      const isMoved = height !== scroller.scrollHeight + scroller.clientHeight
      if (isMoved && isStuck.current) return
      isStuck.current = distance() < CLOSE_PX
      setIsAway(!isStuck.current)
    }
    const onGrow = new ResizeObserver(() => {
      height = scroller.scrollHeight + scroller.clientHeight
      if (isStuck.current) scroller.scrollTo({ top: scroller.scrollHeight })
      else setIsAway(distance() >= CLOSE_PX)
    })
    onGrow.observe(content)
    onGrow.observe(scroller)
    scroller.addEventListener('scroll', onScroll, { passive: true })
    return () => {
      onGrow.disconnect()
      scroller.removeEventListener('scroll', onScroll)
    }
  }, [])

  return { ref, isAway, toEnd }
}
