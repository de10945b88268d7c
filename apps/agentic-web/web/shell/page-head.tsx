import type { ReactNode } from 'react'
import { Icon } from '../parts/icons'
import { SIDEBAR_ID } from './sidebar-id'

interface PageHeadProps {
  readonly title: string
  readonly children?: ReactNode
}

export function PageHead({ title, children }: PageHeadProps) {
  return (
    <header className="page-head">
      <button type="button" className="quiet only-narrow" popoverTarget={SIDEBAR_ID} aria-label="Chats and settings">
        <Icon name="menu" />
      </button>
      <h1>{title}</h1>
      {children !== undefined && <div className="page-head-end">{children}</div>}
    </header>
  )
}
