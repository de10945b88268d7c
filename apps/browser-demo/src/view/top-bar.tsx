import type { DemoActions } from '../demo-actions'
import type { DemoState } from '../demo-state'
import type { Observable } from '../observable'
import { TAB_WORDS, tabStateOf } from '../tab-state'
import { useStateOf } from './use-state-of'

interface TopBarProps {
  readonly state: Observable<DemoState>
  readonly actions: DemoActions
  readonly isInMemory: boolean
}

export function TopBar({ state, actions, isInMemory }: TopBarProps) {
  const tab = useStateOf(state, tabStateOf)
  const { text, short } = TAB_WORDS[tab]
  return (
    <header className="top-bar">
      <h1>
        durably <span className="muted on-wide">in a tab</span>
      </h1>
      {isInMemory ? (
        <Badge look="warning" text="In memory: a reload forgets everything" short="In memory" />
      ) : (
        <Badge look={tab} text={text} short={short} />
      )}
      {!isInMemory && (
        <button
          type="button"
          className="danger-quiet kill"
          disabled={tab !== 'works'}
          title={tab === 'works' ? 'Reloads the page at once, as a crash would' : 'This tab has no worker'}
          onClick={actions.killWorker}
        >
          Kill <span className="on-wide">this tab's </span>worker
        </button>
      )}
    </header>
  )
}

interface BadgeProps {
  readonly look: string
  readonly text: string
  readonly short: string
}

function Badge({ look, text, short }: BadgeProps) {
  return (
    <p className={`badge is-${look}`} title={text}>
      <span className="on-wide">{text}</span>
      <span className="on-narrow">{short}</span>
    </p>
  )
}
