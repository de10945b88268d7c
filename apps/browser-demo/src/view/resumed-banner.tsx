import type { DemoState } from '../demo-state'
import type { Observable } from '../observable'
import { shortId } from '../run-status'
import { useStateOf } from './use-state-of'

/** Says what a worker did not have to do again. */
export function ResumedBanner({ state }: { readonly state: Observable<DemoState> }) {
  const resumed = useStateOf(state, (value) => value.resumed)
  return (
    <div role="status">
      {resumed !== null && (
        <div className="notice is-good">
          <p>
            <strong>
              Resumed: {resumed.skipped} {resumed.skipped === 1 ? 'step was' : 'steps were'} skipped
            </strong>{' '}
            in {resumed.jobName} {shortId(resumed.runId)}, because their results are stored.
          </p>
          <button type="button" className="quiet" onClick={() => state.set({ resumed: null })}>
            Dismiss
          </button>
        </div>
      )}
    </div>
  )
}
