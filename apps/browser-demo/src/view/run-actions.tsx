import type { Run } from '@coji/durably'
import { useEffect, useRef, useState } from 'react'
import type { DemoActions } from '../demo-actions'
import { canCancel, canRetry } from '../run-status'
import { focusDetail } from './focus'
import { useFocusKept } from './use-focus-kept'

interface RunActionsProps {
  readonly run: Run
  readonly actions: DemoActions
}

/** What can be done to the run as it stands. */
export function RunActions({ run, actions }: RunActionsProps) {
  const [isBusy, setIsBusy] = useState(false)
  const group = useFocusKept()
  const during = async (work: () => Promise<unknown>) => {
    if (isBusy) return
    setIsBusy(true)
    await work()
    setIsBusy(false)
  }
  const remove = async () => {
    if (await actions.remove(run)) focusDetail()
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields.
    <div className="button-row run-actions" role="group" aria-label="Actions" tabIndex={-1} ref={group}>
      {canCancel(run) && (
        <button type="button" aria-disabled={isBusy} onClick={() => during(() => actions.cancel(run))}>
          Cancel
        </button>
      )}
      {canRetry(run) && (
        <button
          type="button"
          className="primary"
          aria-disabled={isBusy}
          onClick={() => during(() => actions.retry(run))}
        >
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
      <button type="button" className="danger-quiet" ref={toFocus} aria-disabled={isBusy} onClick={() => setAsks(true)}>
        Delete
      </button>
    )
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields.
    <span className="confirm" role="group" aria-label="Delete this run?">
      <span>Delete this run and its files?</span>
      <button type="button" className="danger" aria-disabled={isBusy} onClick={() => void onDelete()}>
        Yes, delete
      </button>
      <button type="button" ref={toFocus} aria-disabled={isBusy} onClick={() => setAsks(false)}>
        Keep
      </button>
    </span>
  )
}
