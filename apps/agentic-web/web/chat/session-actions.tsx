import { useRunStore } from '@coji/durably-react'
import { useId, useState } from 'react'
import { useLocation } from 'wouter'
import type { Session } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { wordsFor } from '../api/request'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icons'
import { useNotices } from '../parts/notices'

/** Renames and deletes a chat. */
export function SessionActions({ session }: { readonly session: Session }) {
  const [asked, setAsked] = useState<'rename' | 'delete' | null>(null)
  const close = () => setAsked(null)
  return (
    <>
      <button
        type="button"
        className="quiet"
        aria-label="Rename this chat"
        title="Rename"
        onClick={() => setAsked('rename')}
      >
        <Icon name="pencil" />
      </button>
      <button
        type="button"
        className="quiet"
        aria-label="Delete this chat"
        title="Delete"
        onClick={() => setAsked('delete')}
      >
        <Icon name="bin" />
      </button>
      {asked === 'rename' && <RenameDialog session={session} onClose={close} />}
      {asked === 'delete' && <DeleteDialog session={session} onClose={close} />}
    </>
  )
}

interface SessionDialogProps {
  readonly session: Session
  readonly onClose: () => void
}

function RenameDialog({ session: { session_id, title }, onClose }: SessionDialogProps) {
  const id = useId()
  const [text, setText] = useState(title)
  const { isBusy, problem, run } = useAction(onClose)
  return (
    <Dialog
      title="Rename this chat"
      confirm={{ label: 'Rename', isBusy: isBusy || text.trim() === '' }}
      onConfirm={() => void run(() => agentApi.renameSession(session_id, text.trim()))}
      onClose={onClose}
    >
      <label htmlFor={id}>Name</label>
      <input
        id={id}
        autoFocus
        value={text}
        maxLength={200}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="field-problem" role="alert">
        {problem}
      </p>
    </Dialog>
  )
}

function DeleteDialog({ session: { session_id, title, state }, onClose }: SessionDialogProps) {
  const [, navigate] = useLocation()
  const { tell } = useNotices()
  const { isBusy, problem, run } = useAction(onClose)
  const isActive = state === 'queued' || state === 'running' || state === 'waiting'
  const remove = async () => {
    await agentApi.deleteSession(session_id)
    navigate('/')
    tell(`Deleted “${title}”.`)
  }
  return (
    <Dialog
      title="Delete this chat?"
      confirm={{ label: 'Delete', isDangerous: true, isBusy }}
      onConfirm={() => void run(remove)}
      onClose={onClose}
    >
      <p>
        “{title}” and its files are deleted for good{isActive ? ', and what the agent does there is stopped' : ''}.
      </p>
      <p className="field-problem" role="alert">
        {problem}
      </p>
    </Dialog>
  )
}

function useAction(onDone: () => void) {
  const store = useRunStore()
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const run = async (action: () => Promise<unknown>) => {
    setIsBusy(true)
    try {
      await action()
      store.refresh()
      onDone()
    } catch (error) {
      setProblem(wordsFor(error))
      setIsBusy(false)
    }
  }
  return { isBusy, problem, run }
}
