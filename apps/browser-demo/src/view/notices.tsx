import type { DemoState } from '../demo-state'
import { dismissNotice } from '../notices'
import type { Observable } from '../observable'
import { useStateOf } from './use-state-of'

/** Trouble, until it is dismissed. */
export function Notices({ state }: { readonly state: Observable<DemoState> }) {
  const notices = useStateOf(state, (value) => value.notices)
  return notices.map(({ id, title, text }) => (
    <div key={id} className="notice is-trouble" role="alert">
      <p>
        <strong>{title}.</strong> {text}
      </p>
      <button type="button" className="quiet" onClick={() => dismissNotice(state, id)}>
        Dismiss
      </button>
    </div>
  ))
}
