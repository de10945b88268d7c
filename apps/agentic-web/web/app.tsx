import { createRunStore, DurablyProvider } from '@coji/durably-react'
import { createDurablyClient } from '@coji/durably-server/client'
import { useMemo } from 'react'
import { Route, Switch } from 'wouter'
import type { User } from '../src/contract'
import { whileVisible } from './api/visible'
import { ChatPage } from './chat/chat-page'
import { ChatStore, ChatStoreContext } from './chat/chat-store'
import { NewChat } from './chat/new-chat'
import { ApprovalsPage } from './pages/approvals-page'
import { SettingsPage } from './pages/settings-page'
import { EmptyState } from './parts/empty-state'
import { Notices, NoticesProvider } from './parts/notices'
import { Sidebar } from './shell/sidebar'
import { SignIn } from './shell/sign-in'
import { useMe } from './shell/use-me'

export function App() {
  const [asked, know] = useMe()
  switch (asked.kind) {
    case 'asking':
      return <p className="page is-late muted">Asking the server …</p>
    case 'trouble':
      return (
        <main className="page">
          <EmptyState title="The server is away" text={`${asked.words} It is asked again.`} />
        </main>
      )
    case 'nobody':
      return <SignIn onSignedIn={know} />
    case 'known':
      return <SignedIn user={asked.me.user} />
  }
}

/** Says which runs change: lists are read again then, in every tab. */
function createStores() {
  const client = createDurablyClient({ url: '/api/durably' })
  const runs = createRunStore({
    ...client,
    watchRuns: (listener) => whileVisible(() => client.watchRuns(listener)),
  } as Parameters<typeof createRunStore>[0])
  return { runs, chats: new ChatStore(() => runs.refresh()) }
}

function SignedIn({ user }: { readonly user: User }) {
  const { runs, chats } = useMemo(createStores, [])
  return (
    <DurablyProvider durably={runs}>
      <ChatStoreContext value={chats}>
        <NoticesProvider>
          <SkipLink />
          <div className="shell">
            <Sidebar user={user} />
            <main className="main" id="content" tabIndex={-1}>
              <Pages />
            </main>
          </div>
          <Notices />
        </NoticesProvider>
      </ChatStoreContext>
    </DurablyProvider>
  )
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <NewChat />
      </Route>
      <Route path="/chat/:id">{({ id }) => <ChatPage key={id} id={decodeURIComponent(id)} />}</Route>
      <Route path="/approvals">
        <ApprovalsPage />
      </Route>
      <Route path="/settings">
        <SettingsPage />
      </Route>
      <Route>
        <EmptyState title="There is nothing at this address" text="Your chats are in the list." />
      </Route>
    </Switch>
  )
}

function SkipLink() {
  return (
    <button type="button" className="skip-link" onClick={() => document.getElementById('content')?.focus()}>
      Skip to the content
    </button>
  )
}
