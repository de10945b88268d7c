import { readConfig, serveFile } from './file-server'

serveFile(readConfig())
