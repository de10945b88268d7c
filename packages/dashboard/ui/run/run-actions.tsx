import type { Run } from '@coji/durably-core'
import { type RunStore, type StepView, useRunStore } from '@coji/durably-react'
import { useState } from 'react'
import { type Action, type DashboardApi, useViewer } from '../api'
import { Dialog } from '../parts/dialog'
import { useNotices } from '../parts/notices'
import { CAN } from '../run-status'
import { ForkDialog } from './fork-dialog'
import { SignalDialog } from './signal-dialog'

interface RunActionsProps {
  readonly run: Run
  readonly steps: readonly StepView[]
}

interface RunAction {
  readonly label: string
  readonly needs: Action
  readonly can: (run: Run) => boolean
  readonly isDangerous?: boolean
  readonly words: (run: Run) => string
  readonly done: (run: Run) => string
  readonly perform: (run: Run, by: { readonly store: RunStore; readonly api: DashboardApi }) => Promise<unknown>
}

const ACTIONS: readonly RunAction[] = [
  {
    label: 'Retry',
    needs: 'retry',
    can: CAN.retry,
    words: () => 'It goes on after its last completed step.',
    done: () => 'The run goes on.',
    perform: ({ id }, { store }) => store.retry(id),
  },
  {
    label: 'Let it go on',
    needs: 'unpark',
    can: CAN.unpark,
    words: () => 'It goes on where it was, and is parked again if nothing was mended.',
    done: () => 'The run goes on.',
    perform: ({ id }, { api }) => api.unpark(id),
  },
  {
    label: 'End as failed',
    needs: 'unpark',
    can: CAN.unpark,
    isDangerous: true,
    words: () => 'It can be retried later.',
    done: () => 'The run has failed.',
    perform: ({ id }, { api }) => api.failParked(id),
  },
  {
    label: 'Cancel',
    needs: 'cancel',
    can: CAN.cancel,
    isDangerous: true,
    words: ({ status }) => (status === 'running' ? 'It ends as soon as its worker hears of it.' : 'It ends at once.'),
    done: ({ status }) => (status === 'running' ? 'The run was asked to end.' : 'The run was cancelled.'),
    perform: ({ id }, { store }) => store.cancel(id),
  },
  {
    label: 'Delete',
    needs: 'delete',
    can: CAN.delete,
    isDangerous: true,
    words: () => 'It is gone with its steps, events and logs.',
    done: () => 'The run was deleted.',
    perform: ({ id }, { store }) => store.deleteRun(id),
  },
]

/** What the viewer may do to the run as it stands. */
export function RunActions({ run, steps }: RunActionsProps) {
  const [asking, setAsking] = useState<RunAction | null>(null)
  const [open, setOpen] = useState<'signal' | 'fork' | null>(null)
  const waitsFor = steps.flatMap(({ kind, status, name }) => (kind === 'signal' && status === 'waiting' ? [name] : []))
  const { me } = useViewer()
  const actions = ACTIONS.filter(({ needs, can }) => me.actions.includes(needs) && can(run))
  const canSignal = me.actions.includes('signal') && CAN.signal(run) && waitsFor.length > 0
  // What the server does for itself has no input that people could write.
  const canFork = me.actions.includes('fork') && !run.jobName.startsWith('durably:')
  if (actions.length === 0 && !canSignal && !canFork) return null
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields
    <div className="button-row" role="group" aria-label="Actions">
      {canSignal && (
        <button type="button" className="primary" onClick={() => setOpen('signal')}>
          Signal
        </button>
      )}
      {canFork && (
        <button type="button" onClick={() => setOpen('fork')}>
          Run again
        </button>
      )}
      {actions.map((action) => (
        <button key={action.label} type="button" onClick={() => setAsking(action)}>
          {action.label}
        </button>
      ))}
      {asking !== null && <ActionDialog action={asking} run={run} onClose={() => setAsking(null)} />}
      {open === 'signal' && <SignalDialog run={run} waitsFor={waitsFor} onClose={() => setOpen(null)} />}
      {open === 'fork' && <ForkDialog run={run} steps={steps} onClose={() => setOpen(null)} />}
    </div>
  )
}

interface ActionDialogProps {
  readonly action: RunAction
  readonly run: Run
  readonly onClose: () => void
}

function ActionDialog({ action, run, onClose }: ActionDialogProps) {
  const { tell } = useNotices()
  const store = useRunStore()
  const { api } = useViewer()
  const [isBusy, setIsBusy] = useState(false)
  const perform = async () => {
    setIsBusy(true)
    try {
      await action.perform(run, { store, api })
      store.refresh()
      tell(action.done(run))
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), 'bad')
    }
    onClose()
  }
  return (
    <Dialog
      title={`${action.label}?`}
      confirm={{ label: action.label, isDangerous: action.isDangerous === true, isBusy }}
      onConfirm={() => void perform()}
      onClose={onClose}
    >
      <p>{action.words(run)}</p>
    </Dialog>
  )
}
