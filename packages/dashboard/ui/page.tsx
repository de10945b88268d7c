/// <reference types="vite/client" />
import { createDurablyClient } from '@coji/durably-server/client'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { App } from './app'
import { toHash, useHashPlace, useHashSearch } from './hash-place'

/** What the dashboard shows in a document of your own. */
export interface PageOptions {
  /**
   * A handler of `createDurablyHandler` without a `basePath`, on an instance of this very document or worker; or the address
   * of one.
   */
  readonly api: ((request: Request) => Promise<Response>) | string
}

/**
 * Shows the dashboard without a server, in an element of a document that has nothing else in it. Where one is in it is in the
 * hash of the address. Returns how to take it away.
 *
 * ```ts
 * showDashboard(document.body, { api: createDurablyHandler(durably, { allowAnonymous: true }) })
 * ```
 */
export function showDashboard(element: Element, { api }: PageOptions): () => void {
  const client =
    typeof api === 'string'
      ? createDurablyClient({ url: api })
      : createDurablyClient({ url: location.origin, fetch: api })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(Object.values(STYLES).join('\n'))
  document.adoptedStyleSheets.push(sheet)
  const root = createRoot(element)
  root.render(
    <StrictMode>
      <Router hook={useHashPlace} searchHook={useHashSearch} hrefs={toHash}>
        <App api={client} basePath="" />
      </Router>
    </StrictMode>,
  )
  return () => {
    root.unmount()
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
  }
}

/** In the order of their names, as the page of a server has them. */
const STYLES = import.meta.glob<string>('./styles/*.css', { eager: true, query: '?inline', import: 'default' })
