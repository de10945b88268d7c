import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './styles/base.css'
import './styles/controls.css'
import './styles/layout.css'
import './styles/runs.css'
import './styles/timeline.css'
import { guardFarewells } from './farewell'
import { startDemo } from './start-demo'
import { App } from './view/app'
import { Opening } from './view/opening'
import { StartError } from './view/start-error'

const element = document.getElementById('root')
if (element === null) throw new Error('The page has no element with the id "root".')
const root = createRoot(element)
const allowMemory = new URLSearchParams(location.search).has('memory')

guardFarewells()
root.render(<Opening />)
startDemo(allowMemory).then(
  (started) =>
    root.render(
      <StrictMode>
        <App started={started} />
      </StrictMode>,
    ),
  (error: unknown) => root.render(<StartError error={error} />),
)
