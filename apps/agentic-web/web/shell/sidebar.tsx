import { useRead } from '@coji/durably-react'
import { useEffect, useRef, useState } from 'react'
import { Link, useLocation, useRoute } from 'wouter'
import type { Session, User } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { Brand, Icon, Spinner } from '../parts/icons'
import { useNarrow } from '../parts/use-narrow'
import { SIDEBAR_ID } from './sidebar-id'

export function Sidebar({ user }: { readonly user: User }) {
  const isNarrow = useNarrow()
  const [place] = useLocation()
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    // Whoever chose something wants to see it.
    if (isNarrow && place !== '') panel.current?.hidePopover?.()
  }, [isNarrow, place])
  return (
    <nav
      ref={panel}
      id={SIDEBAR_ID}
      className="sidebar"
      aria-label="Chats"
      {...(isNarrow && { popover: 'auto' as const })}
    >
      <div className="sidebar-top">
        <Link href="/" className="brand">
          <Brand /> durably chat
        </Link>
        {isNarrow && (
          <button
            type="button"
            className="quiet"
            popoverTarget={SIDEBAR_ID}
            popoverTargetAction="hide"
            aria-label="Close"
          >
            <Icon name="close" />
          </button>
        )}
      </div>
      <Link href="/" className="button primary">
        <Icon name="plus" /> New chat
      </Link>
      <ApprovalsLink />
      <SessionList />
      <div className="sidebar-foot">
        <NavLink href="/settings" icon="gear" label="Settings" />
        <div className="who">
          <span className="avatar" aria-hidden="true">
            {user.name.slice(0, 1)}
          </span>
          <span className="who-name">{user.name}</span>
          <SignOut />
        </div>
      </div>
    </nav>
  )
}

function ApprovalsLink() {
  const { value } = useRead('approvals', agentApi.approvals)
  const count = value?.length ?? 0
  return <NavLink href="/approvals" icon="inbox" label="Waiting for you" count={count} />
}

interface NavLinkProps {
  readonly href: string
  readonly icon: 'gear' | 'inbox'
  readonly label: string
  readonly count?: number
}

function NavLink({ href, icon, label, count = 0 }: NavLinkProps) {
  const [isHere] = useRoute(href)
  return (
    <Link href={href} className="nav-link" {...(isHere && { 'aria-current': 'page' as const })}>
      <Icon name={icon} /> <span>{label}</span>
      {count > 0 && <span className="count is-warn">{count}</span>}
    </Link>
  )
}

function SessionList() {
  const [pages, setPages] = useState(1)
  const { value, isLoading, trouble } = useRead(`sessions ${pages}`, () => agentApi.sessions(pages))
  const [before, setBefore] = useState(value)
  if (value !== null && value !== before) setBefore(value)
  const shown = value ?? before
  return (
    <div className="sessions">
      <h2 className="sidebar-heading">Chats</h2>
      {shown === null && isLoading && trouble === null && <p className="muted small is-late">Reading …</p>}
      {shown === null && trouble !== null && <p className="muted small">They cannot be read right now.</p>}
      {shown?.sessions.length === 0 && <p className="muted small">None yet. Say something!</p>}
      <ul aria-label="Chats">
        {shown?.sessions.map((session) => (
          <SessionLink key={session.session_id} session={session} />
        ))}
      </ul>
      {shown?.hasMore === true && (
        <button type="button" className="quiet" onClick={() => setPages(pages + 1)}>
          Show older chats
        </button>
      )}
    </div>
  )
}

function SessionLink({ session: { session_id, title, state } }: { readonly session: Session }) {
  const href = `/chat/${session_id}`
  const [isHere] = useRoute(href)
  return (
    <li>
      <Link href={href} className="session-link" {...(isHere && { 'aria-current': 'page' as const })}>
        <span className="session-title">{title}</span>
        <SessionState state={state} />
      </Link>
    </li>
  )
}

function SessionState({ state }: Pick<Session, 'state'>) {
  switch (state) {
    case 'queued':
    case 'running':
      return (
        <span className="session-state is-active" title="Working">
          <Spinner />
          <span className="visually-hidden">, working</span>
        </span>
      )
    case 'waiting':
      return (
        <span className="session-state is-warn" title="Waits for you">
          <Icon name="hand" />
          <span className="visually-hidden">, waits for you</span>
        </span>
      )
    case 'failed':
      return (
        <span className="session-state is-bad" title="Failed">
          <Icon name="cross" />
          <span className="visually-hidden">, failed</span>
        </span>
      )
    default:
      return null
  }
}

/** Everything that this page knows is forgotten with it. */
function SignOut() {
  const leave = () => void agentApi.signOut().finally(() => location.assign('/'))
  return (
    <button type="button" className="quiet" aria-label="Sign out" title="Sign out" onClick={leave}>
      <Icon name="out" />
    </button>
  )
}
