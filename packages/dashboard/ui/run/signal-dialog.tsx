import type { Run } from '@coji/durably-core'
import { useRunStore } from '@coji/durably-react'
import { useId, useState } from 'react'
import { Dialog } from '../parts/dialog'
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
  const ids = { name: useId(), payload: useId(), problem: useId() }
  const send = async () => {
    const payload = parsed(text)
    if ('problem' in payload) return setProblem(payload.problem)
    setIsBusy(true)
    try {
      await store.signal(run.id, name, payload.value)
      tell(`"${name}" was sent.`)
      onClose()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
      setIsBusy(false)
    }
  }
  return (
    <Dialog title="Send a signal" confirm={{ label: 'Send', isBusy }} onConfirm={() => void send()} onClose={onClose}>
      <label htmlFor={ids.name}>Name</label>
      <input id={ids.name} value={name} onChange={(event) => setName(event.target.value)} required list="waits" />
      <datalist id="waits">
        {waitsFor.map((wait) => (
          <option key={wait} value={wait} />
        ))}
      </datalist>
      <label htmlFor={ids.payload}>Payload, as JSON</label>
      <textarea
        id={ids.payload}
        rows={6}
        spellCheck={false}
        value={text}
        placeholder='{ "approved": true }'
        aria-invalid={problem !== null}
        aria-describedby={ids.problem}
        onChange={(event) => {
          setText(event.target.value)
          setProblem(null)
        }}
      />
      <p id={ids.problem} className="field-problem" role="alert">
        {problem}
      </p>
    </Dialog>
  )
}

function parsed(text: string): { readonly value: unknown } | { readonly problem: string } {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { problem: `This is no JSON: ${(error as Error).message}` }
  }
}
