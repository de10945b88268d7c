import { formatAgo, formatMoment } from '../format'
import { useNow } from '../use-now'

/** How long ago, with the exact time at hand. */
export function Moment({ at }: { readonly at: string }) {
  const now = useNow(true, 15_000)
  return (
    <time dateTime={at} title={formatMoment(at)}>
      {formatAgo(at, now)}
    </time>
  )
}
