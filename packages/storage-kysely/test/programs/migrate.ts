import { createKyselyStorage } from '../../src'
import { connect } from './connect'

const [driver = '', file = ''] = process.argv.slice(2)
const storage = createKyselyStorage({ dialect: connect(driver, file) })
await storage.migrate()
await storage.checkSchema()
await storage.close()
