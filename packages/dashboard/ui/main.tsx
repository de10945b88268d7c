import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/base.css'
import './styles/controls.css'
import './styles/entries.css'
import './styles/layout.css'
import './styles/list.css'
import './styles/run.css'
import './styles/stats.css'
import './styles/timeline.css'
import { createApi } from './api'
import { App } from './app'

const root = document.getElementById('root')
if (root === null) throw new Error('The page has no place for the dashboard.')
createRoot(root).render(
  <StrictMode>
    <App api={createApi()} basePath={new URL(document.baseURI).pathname.replace(/\/$/, '')} />
  </StrictMode>,
)
