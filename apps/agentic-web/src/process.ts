import { ConfigError } from './config'
import type { Log } from './log'

interface Running {
  stop(): Promise<void>
}

/** Runs until SIGTERM or SIGINT, then lets go of what it has in hand. What is wrong at the start ends it with words. */
export async function untilTold(log: Log, start: () => Promise<Running>): Promise<void> {
  const told = new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'))
    process.once('SIGINT', () => resolve('SIGINT'))
  })
  try {
    const running = await start()
    log('info', 'draining', { signal: await told })
    await running.stop()
    log('info', 'stopped')
  } catch (error) {
    if (error instanceof ConfigError) process.stderr.write(`${error.message}\n`)
    else log('error', 'ended', { error: String(Object(error).stack ?? error) })
    // What was opened before the trouble would keep it alive.
    process.exit(1)
  }
}
