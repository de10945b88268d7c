import type { Run } from '@coji/durably-core'
import { useRunStore } from '@coji/durably-react'
import { useId, useState } from 'react'
import { Dialog } from '../parts/dialog'
import { JsonField, parseJson } from '../parts/json-field'
import { useNotices } from '../parts/notices'

interface SignalDialogProps {
  readonly run: Run
  readonly waitsFor: readonly string[]
  readonly onClose: () => void
}

/** Hands a run what it waits for. */
export function SignalDialog({ run, waitsFor, onClose }: SignalDialogProps) {
  const store = useRunStore()
  const { tell } = useNotices()
  const [name, setName] = useState(waitsFor[0] ?? '')
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setIsBusy] = useState(false)
  const nameId = useId()
  const send = async () => {
    const payload = parseJson(text)
    if ('problem' in payload) return setProblem(payload.problem)
    setIsBusy(true)
    try {
      await store.signal(run.id, name, payload.value)
      tell(`"${name}" was sent.`)
      onClose()
    } catch (error) {
      setProblem((error as Error).message)
      setIsBusy(false)
    }
  }
  return (
    <Dialog title="Send a signal" confirm={{ label: 'Send', isBusy }} onConfirm={() => void send()} onClose={onClose}>
      <label htmlFor={nameId}>Name</label>
      <select id={nameId} value={name} onChange={(event) => setName(event.target.value)}>
        {waitsFor.map((wait) => (
          <option key={wait}>{wait}</option>
        ))}
      </select>
      <JsonField
        label="Payload, as JSON"
        text={text}
        problem={problem}
        placeholder='{ "approved": true }'
        onChange={(changed) => {
          setText(changed)
          setProblem(null)
        }}
      />
    </Dialog>
  )
}
