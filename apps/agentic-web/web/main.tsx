import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/base.css'
import './styles/controls.css'
import './styles/layout.css'
import './styles/chat.css'
import './styles/prose.css'
import { App } from './app'

const root = document.getElementById('root')
if (root === null) throw new Error('The page has no place for the chat.')
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
