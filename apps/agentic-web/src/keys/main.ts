import { readWorkerConfig } from '../config'
import { openDatabase } from '../database/open'
import { createLog } from '../log'
import { rotateSecrets } from './rotate'

const log = createLog('keys')

/** Seals everything anew with the first of SECRET_KEYS, so that the others can be taken away. Everything else may go on. */
const database = await openDatabase(readWorkerConfig(process.env))
const { settings, auth, visits } = await rotateSecrets(database)
log('info', 'sealed anew', { settings: settings.sealed, auth: auth.sealed, visits: visits.sealed })
const unreadable = { settings: settings.unreadable, auth: auth.unreadable, visits: visits.unreadable }
if (Object.values(unreadable).some((count) => count > 0)) log('warn', 'unreadable', unreadable)
// A visit is over in minutes; what is kept may need a key that was forgotten.
if (unreadable.settings + unreadable.auth > 0) process.exitCode = 1
await database.close()
