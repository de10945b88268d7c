import { useRead, useRunStore } from '@coji/durably-react'
import { type ReactNode, useEffect } from 'react'
import type { Message, RunView, SessionDetail } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { statusOf, wordsFor } from '../api/request'
import { EmptyState } from '../parts/empty-state'
import { Icon } from '../parts/icons'
import { useNotices } from '../parts/notices'
import { useTitle } from '../parts/use-title'
import { PageHead } from '../shell/page-head'
import { Announcer } from './announcer'
import { type PendingMessage, useChatStore, usePending } from './chat-store'
import { Composer } from './composer'
import { FilesMenu } from './files-menu'
import { RunBlock, UserMessage } from './run-block'
import { SessionActions } from './session-actions'
import { useStickToEnd } from './use-stick-to-end'

export function ChatPage({ id }: { readonly id: string }) {
  const { value: session, trouble } = useRead(`session ${id}`, () => agentApi.session(id))
  useTitle(session?.title ?? 'Chat')
  if (statusOf(trouble) === 404) {
    return <EmptyState title="There is no such chat" text="It was deleted, or it is somebody else's." />
  }
  if (session === null) {
    return trouble === null ? (
      <p className="is-late muted page">Reading the chat …</p>
    ) : (
      <EmptyState title="The chat cannot be read" text={`${wordsFor(trouble)} It is tried again.`} />
    )
  }
  return <Conversation session={session} isCutOff={trouble !== null} />
}

interface ConversationProps {
  readonly session: SessionDetail
  readonly isCutOff: boolean
}

function Conversation({ session, isCutOff }: ConversationProps) {
  const store = useChatStore()
  const pending = usePending(session.session_id)
  const { ref, isAway, toEnd } = useStickToEnd()
  const active = session.runs.find(isActive) ?? null
  useForgetSent(session, pending)
  const stop = useStop()
  return (
    <>
      <PageHead title={session.title}>
        <FilesMenu key={session.session_id} session={session} />
        <SessionActions session={session} />
      </PageHead>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within reach of the keyboard */}
      <section className="transcript" ref={ref} tabIndex={0} aria-label="Conversation">
        <div className="transcript-inner">
          <Runs session={session} />
          {pending.map((message) => (
            <Pending key={message.key} sessionId={session.session_id} message={message} />
          ))}
          {session.runs.length === 0 && pending.length === 0 && (
            <EmptyState title="Nothing was said here yet" text="Write the first message below." />
          )}
        </div>
      </section>
      <div className="chat-foot">
        {isAway && (
          <button type="button" className="to-end" onClick={toEnd}>
            <Icon name="down" /> To the end
          </button>
        )}
        {isCutOff && <Trouble>The connection is lost. It is tried again; what goes on goes on without it.</Trouble>}
        <Composer
          key={session.session_id}
          onStop={active === null ? null : () => stop(active.run_id)}
          isStopping={active?.isCancelRequested ?? false}
          onSend={(text) => {
            void store.send(session.session_id, text)
            toEnd()
          }}
        />
      </div>
      <Announcer session={session} />
    </>
  )
}

function Trouble({ children }: { readonly children: ReactNode }) {
  return (
    <p className="trouble" role="status">
      {children}
    </p>
  )
}

const NONE: readonly Message[] = []

function isActive({ status }: RunView): boolean {
  return status === 'queued' || status === 'running'
}

function Runs({ session: { runs, messages } }: { readonly session: SessionDetail }) {
  const byRun = new Map<string, Message[]>()
  for (const message of messages) {
    const of = byRun.get(message.run_id)
    if (of === undefined) byRun.set(message.run_id, [message])
    else of.push(message)
  }
  return runs.map((run: RunView, index) => (
    <RunBlock
      key={run.run_id}
      run={run}
      messages={byRun.get(run.run_id) ?? NONE}
      isBehind={runs.slice(0, index).some(isActive)}
    />
  ))
}

/** What was sent, until the conversation has it. */
function Pending({ sessionId, message }: { readonly sessionId: string; readonly message: PendingMessage }) {
  const store = useChatStore()
  const { key, text, trouble } = message
  return (
    <article className="run" aria-label="A message that is being sent">
      <UserMessage text={text} />
      {trouble !== null && (
        <div className="failure" role="alert">
          <p>
            <strong>Not sent.</strong> {trouble}
          </p>
          <button type="button" onClick={() => void store.send(sessionId, text, key)}>
            <Icon name="retry" /> Send again
          </button>
          <button type="button" className="quiet" onClick={() => store.forget(sessionId, key)}>
            Discard
          </button>
        </div>
      )}
    </article>
  )
}

function useForgetSent({ session_id, runs }: SessionDetail, pending: readonly PendingMessage[]): void {
  const store = useChatStore()
  useEffect(() => {
    for (const { key, runId } of pending) {
      if (runs.some(({ run_id }) => run_id === runId)) store.forget(session_id, key)
    }
  }, [store, session_id, runs, pending])
}

function useStop(): (runId: string) => void {
  const store = useRunStore()
  const { tell } = useNotices()
  return (runId) =>
    void agentApi.cancelRun(runId).then(
      () => store.refresh(),
      (error: unknown) => tell(wordsFor(error), 'bad'),
    )
}
