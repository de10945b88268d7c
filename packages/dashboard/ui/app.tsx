import { DurablyProvider } from '@coji/durably-react'
import { Route, Router, Switch } from 'wouter'
import { type DashboardApi, ViewerContext } from './api'
import { ListPage } from './list/list-page'
import { Notices, NoticesProvider } from './parts/notices'
import { EmptyState } from './parts/empty-state'
import { TopBar } from './parts/top-bar'
import { RunPage } from './run/run-page'
import { SchedulesPage } from './schedules/schedules-page'
import { StatsPage } from './stats/stats-page'
import { useMe } from './use-me'
import { WorkersPage } from './workers/workers-page'

interface AppProps {
  readonly api: DashboardApi
  /** Where the page is mounted; empty at the root. */
  readonly basePath: string
}

export function App({ api, basePath }: AppProps) {
  const { me, problem, retry } = useMe(api)
  if (problem !== null) {
    return (
      <main className="page">
        <EmptyState title={problem.title} text={problem.text} action={{ label: 'Try again', onPress: retry }} />
      </main>
    )
  }
  if (me === null) return <p className="page is-late muted">Asking the server …</p>
  return (
    <ViewerContext value={{ api, me }}>
      <DurablyProvider durably={api}>
        <NoticesProvider>
          <Router base={basePath}>
            <SkipLink />
            <TopBar />
            <main className="page" id="content" tabIndex={-1}>
              <Switch>
                <Route path="/">
                  <ListPage />
                </Route>
                <Route path="/schedules">
                  <SchedulesPage />
                </Route>
                <Route path="/workers">
                  <WorkersPage />
                </Route>
                <Route path="/stats">
                  <StatsPage />
                </Route>
                <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={decodeURIComponent(id)} />}</Route>
                <Route>
                  <EmptyState title="There is nothing at this address" text="The runs are one click away." />
                </Route>
              </Switch>
            </main>
            <Notices />
          </Router>
        </NoticesProvider>
      </DurablyProvider>
    </ViewerContext>
  )
}

/** No link: with a `<base>` in the page it would lead to another one. */
function SkipLink() {
  return (
    <button type="button" className="skip-link" onClick={() => document.getElementById('content')?.focus()}>
      Skip to the content
    </button>
  )
}
