import { readWorkerConfig } from '../config'
import { openDatabase } from '../database/open'
import { createLog } from '../log'
import { rotateSecrets } from './rotate'

const log = createLog('keys')

/** Seals everything anew with the first of SECRET_KEYS, so that the others can be taken away. Everything else may go on. */
const database = await openDatabase(readWorkerConfig(process.env))
const count = await rotateSecrets(database)
log('info', 'sealed anew', count)
await database.close()
