import { useEffect, useState } from 'react'
import { formatAgo, formatMoment } from '../format'

/** How long ago, with the exact time at hand. */
export function Moment({ at }: { readonly at: string }) {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000)
    return () => clearInterval(timer)
  }, [])
  return (
    <time dateTime={at} title={formatMoment(at)}>
      {formatAgo(at, now)}
    </time>
  )
}
