import type { Run } from '@coji/durably-core'
import type { StepView } from '@coji/durably-react'
import { useId, useState } from 'react'
import { useLocation } from 'wouter'
import { useViewer } from '../api'
import { toJson } from '../format'
import { Dialog } from '../parts/dialog'
import { JsonField, parseJson } from '../parts/json-field'
import { useNotices } from '../parts/notices'

interface ForkDialogProps {
  readonly run: Run
  readonly steps: readonly StepView[]
  readonly onClose: () => void
}

/** A new run of the same job, with the steps up to a chosen one, and another input if somebody wants. */
export function ForkDialog({ run, steps, onClose }: ForkDialogProps) {
  const { api } = useViewer()
  const { tell } = useNotices()
  const [, navigate] = useLocation()
  const before = run.payload === undefined || run.payload === null ? '' : toJson(run.payload)
  const [after, setAfter] = useState('')
  const [text, setText] = useState(before)
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setIsBusy] = useState(false)
  const afterId = useId()
  const completed = steps.filter(({ status }) => status === 'completed')
  const start = async () => {
    const payload = parseJson(text)
    if ('problem' in payload) return setProblem(payload.problem)
    setIsBusy(true)
    try {
      const options = { ...(after !== '' && { after }), ...(text !== before && { payload: payload.value }) }
      const { id } = await api.fork(run.id, options)
      tell('A new run was triggered.')
      navigate(`/runs/${id}`)
    } catch (error) {
      setProblem((error as Error).message)
      setIsBusy(false)
    }
  }
  return (
    <Dialog title="Run it again" confirm={{ label: 'Run', isBusy }} onConfirm={() => void start()} onClose={onClose}>
      <p className="muted">A new run. This one stays as it is.</p>
      <label htmlFor={afterId}>Go on</label>
      <select id={afterId} value={after} onChange={(event) => setAfter(event.target.value)}>
        <option value="">from the beginning</option>
        {completed.map(({ name }) => (
          <option key={name} value={name}>
            after {name}
          </option>
        ))}
      </select>
      <JsonField
        label="Input, as JSON"
        text={text}
        problem={problem}
        onChange={(changed) => {
          setText(changed)
          setProblem(null)
        }}
      />
    </Dialog>
  )
}
