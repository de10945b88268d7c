import { useRunStore } from '@coji/durably-react'
import { type FormEvent, useId, useState } from 'react'
import type { Decision } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { statusOf, wordsFor } from '../api/request'
import { toJson } from '../format'
import { useNotices } from '../parts/notices'
import { ArgumentsField } from './arguments-field'

interface DecisionFormProps {
  readonly runId: string
  /** Of the wait. */
  readonly name: string
  readonly why: 'approval' | 'interrupted'
  readonly tool: string
  readonly given: unknown
}

/** Asks whether a tool may be called, and with what. */
export function DecisionForm({ runId, name, why, tool, given }: DecisionFormProps) {
  const ids = { problem: useId(), reason: useId() }
  const [text, setText] = useState(() => toJson(given))
  const [reason, setReason] = useState<string | null>(null)
  const { isBusy, problem, setProblem, decide } = useDecision(runId, name)

  function approve(event: FormEvent) {
    event.preventDefault()
    const edited = readEdited(text, given)
    if ('problem' in edited) setProblem(edited.problem)
    else void decide({ decision: 'approve', ...edited })
  }

  return (
    <form className="decision" onSubmit={approve} aria-label={`Decide about ${tool}`}>
      <p>{why === 'approval' ? <ApprovalQuestion tool={tool} /> : <InterruptedQuestion tool={tool} />}</p>
      <ArgumentsField text={text} problem={problem} problemId={ids.problem} onChange={setText} />
      {reason !== null && (
        <>
          <label htmlFor={ids.reason}>Why not? The model is told.</label>
          <input
            id={ids.reason}
            // biome-ignore lint/a11y/noAutofocus: it appears because somebody asked for it
            autoFocus
            value={reason}
            maxLength={2000}
            placeholder="Optional"
            onChange={(event) => setReason(event.target.value)}
          />
        </>
      )}
      <p id={ids.problem} className="field-problem" role="alert">
        {problem}
      </p>
      <div className="button-row">
        {reason === null && (
          <button type="submit" className="primary" disabled={isBusy}>
            {why === 'approval' ? 'Approve' : 'Call it again'}
          </button>
        )}
        <button
          type="button"
          className={reason === null ? '' : 'primary'}
          disabled={isBusy}
          onClick={() => (reason === null ? setReason('') : void decide(refusal(reason)))}
        >
          {why === 'approval' ? 'Refuse' : 'Do not call it again'}
        </button>
        {reason !== null && (
          <button type="button" className="quiet" disabled={isBusy} onClick={() => setReason(null)}>
            Back
          </button>
        )}
        <button
          type="button"
          className="quiet is-last"
          disabled={isBusy}
          onClick={() => void decide({ decision: 'stop' })}
        >
          Stop the run
        </button>
      </div>
    </form>
  )
}

function ApprovalQuestion({ tool }: { readonly tool: string }) {
  return (
    <>
      The agent wants to call <strong>{tool}</strong>. You may edit what it is called with.
    </>
  )
}

function InterruptedQuestion({ tool }: { readonly tool: string }) {
  return (
    <>
      <strong>{tool}</strong> was interrupted, and nobody knows whether it did its work. Look first: called again, it
      may do it twice.
    </>
  )
}

function refusal(reason: string): Decision {
  return reason.trim() === '' ? { decision: 'refuse' } : { decision: 'refuse', reason: reason.trim() }
}

/** Nothing, when nothing was changed. */
function readEdited(text: string, given: unknown): { readonly arguments?: unknown } | { readonly problem: string } {
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value) === JSON.stringify(given) ? {} : { arguments: value }
  } catch (error) {
    return { problem: `This is no JSON: ${wordsFor(error)}` }
  }
}

function useDecision(runId: string, name: string) {
  const store = useRunStore()
  const { tell } = useNotices()
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const decide = async (decision: Decision) => {
    setIsBusy(true)
    setProblem(null)
    try {
      await agentApi.decide(runId, name, decision)
    } catch (error) {
      if (statusOf(error) === 409) tell('This was decided before, or its run has ended.')
      else setProblem(wordsFor(error))
      setIsBusy(false)
    }
    store.refresh()
  }
  return { isBusy, problem, setProblem, decide }
}
