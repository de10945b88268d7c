import type { DemoActions } from '../demo-actions'
import type { DemoState, TabRole } from '../demo-state'
import type { Observable } from '../observable'
import { useStateOf } from './use-state-of'

interface TopBarProps {
  readonly state: Observable<DemoState>
  readonly actions: DemoActions
  readonly isInMemory: boolean
}

const ROLES: Readonly<Record<TabRole, string>> = {
  leader: 'This tab runs the jobs',
  follower: 'Another tab runs the jobs',
  unknown: 'Asking the other tabs …',
}

export function TopBar({ state, actions, isInMemory }: TopBarProps) {
  const role = useStateOf(state, (value) => value.role)
  const worker = useStateOf(state, (value) => value.worker)
  return (
    <header className="top-bar">
      <h1>
        durably <span className="muted">in a tab</span>
      </h1>
      <ul className="badges" aria-label="This tab">
        <li className={`badge role-${role}`}>{ROLES[role]}</li>
        <li className="badge">Worker: {worker}</li>
        {isInMemory && <li className="badge warning">In memory: a reload forgets everything</li>}
      </ul>
      <button
        type="button"
        className="danger-quiet kill"
        disabled={role !== 'leader'}
        title={role === 'leader' ? 'Reloads the page at once, as a crash would' : 'This tab has no worker'}
        onClick={actions.killWorker}
      >
        Kill this tab's worker
      </button>
    </header>
  )
}
