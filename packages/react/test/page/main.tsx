import { StrictMode } from 'react'
import { createRoot, hydrateRoot } from 'react-dom/client'
import { createDurablyClient } from '../../../server/src/client/index'
import { DurablyProvider, type RunApi } from '../../src/index'
import { App, type Shown } from './app'
import { closeGate, createInstance, openGate, READ_ON_SERVER } from './jobs'

/** The hooks work on either: an instance in this tab, or the one of the server of this page. */
const durably: RunApi =
  location.pathname === '/over-http' ? createDurablyClient({ url: '/api/durably' }) : createInstance()
const renders: Shown[] = []
const complaints: string[] = []
const followed = { now: 0, ever: 0 }

const api: RunApi = {
  ...durably,
  subscribe(id, options) {
    followed.now += 1
    followed.ever += 1
    options?.signal?.addEventListener('abort', () => {
      followed.now -= 1
    })
    return durably.subscribe(id, options)
  },
}

const root = document.getElementById('root') as HTMLElement
const isHydrated = root.childElementCount > 0
const page = (
  <StrictMode>
    <DurablyProvider durably={api}>
      <App {...(isHydrated && { initial: READ_ON_SERVER })} onRender={(shown) => renders.push(shown)} />
    </DurablyProvider>
  </StrictMode>
)
if (isHydrated) hydrateRoot(root, page, { onRecoverableError: (error) => complaints.push(String(error)) })
else createRoot(root).render(page)

Object.assign(window, { durably, renders, complaints, followed, closeGate, openGate })
