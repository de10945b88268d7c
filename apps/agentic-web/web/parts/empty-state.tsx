import type { ReactNode } from 'react'

interface EmptyStateProps {
  readonly title: string
  readonly text: ReactNode
  readonly action?: { readonly label: string; readonly onPress: () => void }
}

export function EmptyState({ title, text, action }: EmptyStateProps) {
  return (
    <div className="empty-state">
      <h1>{title}</h1>
      <p className="muted">{text}</p>
      {action !== undefined && (
        <button type="button" onClick={action.onPress}>
          {action.label}
        </button>
      )}
    </div>
  )
}
