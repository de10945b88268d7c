import { useRead } from '@coji/durably-react'
import { Link } from 'wouter'
import type { Approval } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { wordsFor } from '../api/request'
import { DecisionForm } from '../chat/decision-form'
import { EmptyState } from '../parts/empty-state'
import { Moment } from '../parts/moment'
import { useNotices } from '../parts/notices'
import { useTitle } from '../parts/use-title'
import { PageHead } from '../shell/page-head'

/** Everything that rests until this person decides, wherever it is. */
export function ApprovalsPage() {
  useTitle('Waiting for you')
  const { value, trouble } = useRead('approvals', agentApi.approvals)
  return (
    <>
      <PageHead title="Waiting for you" />
      <div className="transcript">
        <div className="page">
          {value === null && trouble === null && <p className="muted is-late">Reading …</p>}
          {value === null && trouble !== null && (
            <EmptyState title="This cannot be read" text={`${wordsFor(trouble)} It is tried again.`} />
          )}
          {value?.length === 0 && (
            <EmptyState
              title="Nothing waits for you"
              text="When a tool needs your word, it is asked for here and in the chat."
            />
          )}
          <ul className="approvals" aria-label="Waiting for you">
            {value?.map((approval) => (
              <ApprovalCard key={`${approval.run_id} ${approval.name}`} approval={approval} />
            ))}
          </ul>
        </div>
      </div>
    </>
  )
}

function ApprovalCard({ approval }: { readonly approval: Approval }) {
  const { run_id, session_id, session_title, name, why, tool, since } = approval
  return (
    <li className="card">
      <div className="card-head">
        <h2>
          <Link href={`/chat/${session_id}`}>{session_title}</Link>
        </h2>
        <span className="muted small">
          <Moment at={since} />
        </span>
      </div>
      <DecisionForm runId={run_id} name={name} why={why} tool={tool} given={approval.arguments} />
      <CopyLink runId={run_id} name={name} />
    </li>
  )
}

/** For somebody without a login, or another device: the link decides, once. */
function CopyLink({ runId, name }: { readonly runId: string; readonly name: string }) {
  const { tell } = useNotices()
  const copy = async () => {
    try {
      const { approve_url } = await agentApi.approvalLink(runId, name)
      await navigator.clipboard.writeText(approve_url)
      tell('Copied a link that approves this. Whoever has it can use it, once.')
    } catch (error) {
      tell(wordsFor(error), 'bad')
    }
  }
  return (
    <button type="button" className="quiet" onClick={() => void copy()}>
      Copy a link that approves this
    </button>
  )
}
