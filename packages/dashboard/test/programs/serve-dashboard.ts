import { readFileSync } from 'node:fs'
import { type FileServerConfig, readConfig, serveFile } from '../../../server/test/programs/file-server'
import { serveDashboard } from '../../src/create-dashboard'

export interface DashboardServerConfig extends FileServerConfig {
  /** A file of JSON: those of the page. */
  readonly assets: string
}

const config = readConfig<DashboardServerConfig>()
serveFile(config, (api) => serveDashboard(JSON.parse(readFileSync(config.assets, 'utf8')), { api }))
