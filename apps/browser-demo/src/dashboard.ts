import { createDurably } from '@coji/durably'
import { withLogPersistence } from '@coji/durably/plugins'
import { sqlocal } from '@coji/durably/sqlocal'
import { showDashboard } from '@coji/durably-dashboard/page'
import { createDurablyHandler } from '@coji/durably-server'
import { DATABASE } from './database'

const element = document.getElementById('root')
if (element === null) throw new Error('The page has no element with the id "root".')

/** Looks at the database of the demo, and executes nothing: there is no server, the handler is called by the page itself. */
async function open(): Promise<ReturnType<typeof createDurablyHandler>> {
  const durably = createDurably({ dialect: sqlocal(DATABASE) })
  durably.use(withLogPersistence())
  await durably.migrate()
  return createDurablyHandler(durably, { allowAnonymous: true })
}

open().then(
  (api) => showDashboard(element, { api }),
  (error: unknown) => {
    element.textContent = `There is no database to look at: ${error instanceof Error ? error.message : String(error)}`
  },
)
