import { RUN_STATUSES } from '@coji/durably'
import type { KeyboardEvent } from 'react'
import type { DemoActions } from '../demo-actions'
import type { DemoState } from '../demo-state'
import { formatCount } from '../format'
import type { Observable } from '../observable'
import { RunItem } from './run-item'
import { useNow } from './use-now'
import { useStateOf } from './use-state-of'

interface RunListProps {
  readonly state: Observable<DemoState>
  readonly actions: DemoActions
}

const AGO_EVERY_MS = 5000
const COUNTDOWN_EVERY_MS = 250

/** All runs, newest first. */
export function RunList({ state, actions }: RunListProps) {
  const byId = useStateOf(state, (value) => value.runs)
  const listed = useStateOf(state, (value) => value.listed)
  const counts = useStateOf(state, (value) => value.counts)
  const isLoaded = useStateOf(state, (value) => value.isLoaded)
  const selectedId = useStateOf(state, (value) => value.selectedId)
  const runs = listed.flatMap((id) => byId.get(id) ?? [])
  const now = useNow(runs.some(({ status }) => status === 'pending') ? COUNTDOWN_EVERY_MS : AGO_EVERY_MS)
  const total = counts === null ? runs.length : RUN_STATUSES.reduce((sum, each) => sum + counts[each], 0)
  return (
    <section className="card runs" aria-labelledby="runs">
      <h2 id="runs">
        Runs <span className="muted">{isLoaded && formatCount(total)}</span>
      </h2>
      {isLoaded && runs.length === 0 && <p className="muted empty">No runs yet.</p>}
      {/* biome-ignore lint/a11y/noRedundantRoles: Safari takes a list without bullets for no list. */}
      <ul role="list" aria-label="Runs" className="run-list" onKeyDown={moveFocus}>
        {runs.map((run) => (
          <li key={run.id}>
            <RunItem run={run} now={now} isSelected={run.id === selectedId} onSelect={actions.select} />
          </li>
        ))}
      </ul>
      {total > runs.length && (
        <button type="button" className="quiet" onClick={actions.showMore}>
          Show more
        </button>
      )}
    </section>
  )
}

/** Arrows go up and down the list; Tab works as well. */
function moveFocus(event: KeyboardEvent<HTMLUListElement>): void {
  const buttons = [...event.currentTarget.querySelectorAll('button')]
  const at = buttons.indexOf(document.activeElement as HTMLButtonElement)
  const targets: Readonly<Record<string, number>> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    Home: 0,
    End: buttons.length - 1,
  }
  const target = buttons[targets[event.key] ?? -1]
  if (target === undefined) return
  event.preventDefault()
  target.focus()
}
