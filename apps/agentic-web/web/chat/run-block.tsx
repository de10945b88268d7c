import { useRunStore } from '@coji/durably-react'
import { memo, useEffect, useMemo, useState } from 'react'
import type { Message, RunView } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { wordsFor } from '../api/request'
import { Icon, Spinner } from '../parts/icons'
import { useNotices } from '../parts/notices'
import { useChatStore, useFollowed } from './chat-store'
import { isOver, progressOf, type RunProgress, withKept } from './progress'
import { TurnView } from './turn-view'

interface RunBlockProps {
  readonly run: RunView
  /** What is kept of it. */
  readonly messages: readonly Message[]
  /** Another run of this chat comes first. */
  readonly isBehind: boolean
}

/** A message, and what came of it. */
export const RunBlock = memo(function RunBlock({ run, messages, isBehind }: RunBlockProps) {
  const progress = useProgress(run, messages)
  return (
    <article className="run" aria-label="A message and its answer">
      <UserMessage text={run.message} />
      <div className="answer">
        {progress.turns.map((turn) => (
          <TurnView key={turn.turn} runId={run.run_id} turn={turn} isRunOver={isOver(progress)} />
        ))}
        <RunFoot run={run} progress={progress} isBehind={isBehind} />
      </div>
    </article>
  )
})

export function UserMessage({ text }: { readonly text: string }) {
  return (
    <div className="user-message">
      <p className="visually-hidden">You said:</p>
      <p className="bubble">{text}</p>
    </div>
  )
}

/** Of a run that completed, the conversation has everything; of any other one, the events have more. */
function useProgress(run: RunView, messages: readonly Message[]): RunProgress {
  const store = useChatStore()
  const isEnded = run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled'
  const [isFollowed, setIsFollowed] = useState(run.status !== 'completed')
  if (run.status !== 'completed' && !isFollowed) setIsFollowed(true)
  const { progress, trouble } = useFollowed(isFollowed ? run.run_id : null)
  useEffect(() => {
    if (!isEnded) store.follower(run.run_id).goOn()
  }, [store, run.run_id, isEnded])
  const kept = useMemo(() => progressOf(run, messages), [run, messages])
  return useMemo(() => {
    if (progress === null) return kept
    const state = trouble === null ? progress.state : kept.state
    return withKept({ ...progress, state, error: progress.error ?? kept.error }, messages)
  }, [progress, trouble, kept, messages])
}

interface RunFootProps {
  readonly run: RunView
  readonly progress: RunProgress
  readonly isBehind: boolean
}

/** How it stands, where the answer does not say so itself. */
function RunFoot({ run, progress, isBehind }: RunFootProps) {
  const { state, error, takeovers, turns } = progress
  const isAnswering = turns.at(-1)?.text !== '' && turns.at(-1)?.isOver === false
  return (
    <div className="run-foot">
      {takeovers > 0 && !isOver(progress) && (
        <p className="muted small">Another worker went on with this{takeovers > 1 ? `, ${takeovers} times` : ''}.</p>
      )}
      {state === 'queued' && (
        <p className="run-state">{isBehind ? 'Queued: it is answered next.' : 'Queued: a worker will take it.'}</p>
      )}
      {state === 'running' && !isAnswering && (
        <p className="run-state">
          <Spinner /> {run.isCancelRequested ? 'Stopping …' : 'Working …'}
        </p>
      )}
      {state === 'cancelled' && <p className="run-state">You stopped this.</p>}
      {state === 'failed' && <Failure runId={run.run_id} error={error} />}
    </div>
  )
}

function Failure({ runId, error }: { readonly runId: string; readonly error: string | null }) {
  const store = useRunStore()
  const { tell } = useNotices()
  const retry = () =>
    agentApi.retryRun(runId).then(
      () => store.refresh(),
      (refusal: unknown) => tell(wordsFor(refusal), 'bad'),
    )
  return (
    <div className="failure" role="alert">
      <p>
        <strong>This did not work.</strong> {error}
      </p>
      <button type="button" onClick={retry}>
        <Icon name="retry" /> Try again
      </button>
    </div>
  )
}
