import { createDurably } from '@coji/durably'
import { createCluster } from '@coji/durably-cluster'
import { postgres } from '@coji/durably/postgres'
import { bake } from './bake.js'
import { LEASE_MS } from './lease.js'

const [name = ''] = process.argv.slice(2)
process.title = name

const durably = createDurably({
  ...{ dialect: postgres({ connectionString: process.env['DATABASE_URL'] ?? '' }), workerId: name, concurrency: 3 },
  ...{ heartbeatInterval: LEASE_MS / 3, staleThreshold: LEASE_MS, pollingInterval: 500, logger: null },
})
durably.register({ bake })
createCluster(durably, { lease: LEASE_MS, reassignAfter: LEASE_MS, version: 'v1' })
durably.start()

// Ctrl-C reaches all processes at once.
process.on('SIGINT', () => {})
process.once('SIGTERM', () => void durably.close())
