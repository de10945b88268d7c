import type { StartedDemo } from '../start-demo'
import { ConsoleHint } from './console-hint'
import { DETAIL_ID, focusDetail } from './focus'
import { NewJob } from './new-job'
import { Notices } from './notices'
import { RunList } from './run-list'
import { SelectedRun } from './selected-run'
import { TopBar } from './top-bar'
import { useStateOf } from './use-state-of'

/** The whole page. */
export function App({ started }: { readonly started: StartedDemo }) {
  const { state, actions, isInMemory } = started
  const announcement = useStateOf(state, (value) => value.announcement)
  const isEmpty = useStateOf(state, ({ isLoaded, listed, selectedId }) => {
    return isLoaded && listed.length === 0 && selectedId === null
  })
  return (
    <>
      <button type="button" className="skip-link" onClick={focusDetail}>
        Skip to the selected run
      </button>
      <TopBar state={state} actions={actions} isInMemory={isInMemory} />
      <Notices state={state} />
      <main className={`columns${isEmpty ? ' is-empty' : ''}`}>
        <div className="column">
          <NewJob actions={actions} />
          <RunList state={state} actions={actions} />
        </div>
        <div className="column" id={DETAIL_ID} tabIndex={-1}>
          <SelectedRun state={state} actions={actions} isInMemory={isInMemory} />
        </div>
      </main>
      <ConsoleHint isInMemory={isInMemory} />
      <p className="visually-hidden" role="status" aria-live="polite">
        {announcement}
      </p>
    </>
  )
}
