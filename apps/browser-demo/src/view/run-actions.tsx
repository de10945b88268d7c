import type { Run } from '@coji/durably'
import { useEffect, useRef, useState } from 'react'
import type { DemoActions } from '../demo-actions'
import { canCancel, canRetry } from '../run-status'

interface RunActionsProps {
  readonly run: Run
  readonly actions: DemoActions
}

/** What can be done to the run as it stands. */
export function RunActions({ run, actions }: RunActionsProps) {
  const [isBusy, setIsBusy] = useState(false)
  const during = async (work: () => Promise<unknown>) => {
    setIsBusy(true)
    await work()
    setIsBusy(false)
  }
  const remove = async () => {
    // What had the focus is gone with the run.
    if (await actions.remove(run)) document.getElementById('detail')?.focus()
  }
  return (
    <div className="button-row run-actions">
      {canCancel(run) && (
        <button type="button" disabled={isBusy} onClick={() => during(() => actions.cancel(run))}>
          Cancel
        </button>
      )}
      {canRetry(run) && (
        <button type="button" className="primary" disabled={isBusy} onClick={() => during(() => actions.retry(run))}>
          Retry
        </button>
      )}
      {run.finishedAt !== null && <DeleteButton isBusy={isBusy} onDelete={() => during(remove)} />}
    </div>
  )
}

interface DeleteButtonProps {
  readonly isBusy: boolean
  readonly onDelete: () => Promise<unknown>
}

/** Asks in its place before it deletes. */
function DeleteButton({ isBusy, onDelete }: DeleteButtonProps) {
  const [asks, setAsks] = useState(false)
  const wasAsking = useRef(false)
  const toFocus = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    // The button that was pressed is gone; the keyboard goes on with the one in its place.
    if (asks || wasAsking.current) toFocus.current?.focus()
    wasAsking.current = asks
  }, [asks])
  if (!asks) {
    return (
      <button type="button" className="danger-quiet" ref={toFocus} disabled={isBusy} onClick={() => setAsks(true)}>
        Delete
      </button>
    )
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields.
    <span className="confirm" role="group" aria-label="Delete this run?">
      <span>Delete this run and its files?</span>
      <button type="button" className="danger" disabled={isBusy} onClick={() => void onDelete()}>
        Yes, delete
      </button>
      <button type="button" ref={toFocus} disabled={isBusy} onClick={() => setAsks(false)}>
        Keep
      </button>
    </span>
  )
}
