import { createKyselyStorage } from '../../src'
import { migrated } from '../migrated'
import { connect } from './connect'

const [driver = '', file = ''] = process.argv.slice(2)
const storage = createKyselyStorage({ dialect: connect(driver, file) })
await migrated(storage)
await storage.checkSchema()
await storage.close()
