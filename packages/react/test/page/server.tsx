import { StrictMode } from 'react'
import { renderToString } from 'react-dom/server'
import { DurablyProvider } from '../../src/index'
import { App } from './app'
import { createInstance, READ_ON_SERVER } from './jobs'

/** The page as a server sends it. */
export async function renderPage(): Promise<string> {
  const durably = createInstance()
  const html = renderToString(
    <StrictMode>
      <DurablyProvider durably={durably}>
        <App initial={READ_ON_SERVER} />
      </DurablyProvider>
    </StrictMode>,
  )
  await durably.close()
  return html
}
