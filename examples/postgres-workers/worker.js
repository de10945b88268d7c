import { openShop } from './shop.js'

const [name, dead] = process.argv.slice(2)
process.title = name

const { durably } = await openShop({ workerId: name, concurrency: 2 })
// Who started this process has seen the other one die, so nobody has to wait for its lease to run out.
if (dead !== undefined) await durably.recover({ workerId: dead })
durably.start()
console.log(`${name} is process ${process.pid}`)

// Ctrl-C reaches all processes at once.
process.on('SIGINT', () => {})
process.once('SIGTERM', async () => {
  // What is not done by then is given back.
  await durably.stop({ timeout: 2000 })
  await durably.close()
})
