#!/usr/bin/env node
import { main } from './main'

const interruption = new AbortController()

/** For a command that is told to end while it does something. */
const GRACE_MS = 2000

// The second one ends the process as ever.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    interruption.abort()
    setTimeout(() => process.exit(130), GRACE_MS).unref()
  })
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read this has gone, as in `durably runs | head`.
  if (error.code === 'EPIPE') process.exit(0)
  process.stderr.write(`The result could not be written: ${error.message}\n`)
  process.exit(1)
})

const { stdin, stdout, stderr, env } = process
process.exitCode = await main(process.argv.slice(2), { stdin, stdout, stderr, env, signal: interruption.signal })
