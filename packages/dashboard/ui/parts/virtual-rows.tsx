import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'

interface VirtualRowsProps {
  readonly count: number
  /** What a row takes before it was measured. */
  readonly rowHeight: number
  readonly keyOf: (index: number) => string
  readonly render: (index: number) => ReactNode
  /** The last row comes into sight. */
  readonly onEnd?: (() => void) | undefined
  /** For screen readers. */
  readonly label: string
}

/** Only the rows in sight are in the page, however many there are; the page itself scrolls. */
export function VirtualRows({ count, rowHeight, keyOf, render, onEnd, label }: VirtualRowsProps) {
  const ref = useRef<HTMLUListElement>(null)
  const [scrollMargin, setScrollMargin] = useState(0)
  useLayoutEffect(() => {
    const top = ref.current === null ? 0 : ref.current.getBoundingClientRect().top + window.scrollY
    // What is above may grow or shrink at any time.
    if (Math.abs(top - scrollMargin) > 1) setScrollMargin(top)
  })
  const virtualizer = useWindowVirtualizer({
    count,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin,
    getItemKey: keyOf,
  })
  const items = virtualizer.getVirtualItems()
  const lastInSight = items.at(-1)?.index
  useLayoutEffect(() => {
    if (count > 0 && lastInSight === count - 1) onEnd?.()
  }, [lastInSight, count, onEnd])
  return (
    <ul ref={ref} className="virtual-rows" aria-label={label} style={{ blockSize: virtualizer.getTotalSize() }}>
      {items.map(({ key, index, start }) => (
        <li
          key={key}
          data-index={index}
          ref={virtualizer.measureElement}
          className="virtual-row"
          aria-setsize={count}
          aria-posinset={index + 1}
          style={{ transform: `translateY(${start - scrollMargin}px)` }}
        >
          {render(index)}
        </li>
      ))}
    </ul>
  )
}
