import { useRef } from 'react'
import type { DemoState } from '../demo-state'
import { dismissNotice } from '../notices'
import type { Observable } from '../observable'
import { focusDetail } from './focus'
import { useStateOf } from './use-state-of'

/** Trouble, until it is dismissed. */
export function Notices({ state }: { readonly state: Observable<DemoState> }) {
  const notices = useStateOf(state, (value) => value.notices)
  const ref = useRef<HTMLDivElement>(null)
  const dismiss = (id: string) => {
    const buttons = [...(ref.current?.querySelectorAll('button') ?? [])]
    const at = notices.findIndex((notice) => notice.id === id)
    const next = buttons[at + 1] ?? buttons[at - 1]
    dismissNotice(state, id)
    if (next === undefined) focusDetail()
    else next.focus()
  }
  return (
    <div className="notices" ref={ref}>
      {notices.map(({ id, title, text }) => (
        <div key={id} className="notice is-trouble" role="alert">
          <p>
            <strong>{title}.</strong> {text}
          </p>
          <button type="button" className="quiet" onClick={() => dismiss(id)}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  )
}
