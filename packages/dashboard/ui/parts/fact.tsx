import type { ReactNode } from 'react'

/** What there is to know of something in a list, one of several. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt className="small muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
