import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { startCable } from './cable.js'

/**
 * A process of the cluster, and what can be done to it.
 * @param {string} name
 * @param {string} url
 */
export async function startMember(name, url) {
  const cable = await startCable(url)
  const program = join(import.meta.dirname, 'member.js')
  /** @returns {import('node:child_process').ChildProcess} */
  const start = () => {
    const env = { ...process.env, DATABASE_URL: cable.url }
    return spawn(process.execPath, [program, name], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  }
  let child = start()
  let isPaused = false
  return {
    name,
    /** What was done to it. */
    harm() {
      if (child.exitCode !== null || child.signalCode !== null) return 'dead'
      return isPaused ? 'paused' : cable.isCut() ? 'cut off' : ''
    },
    kill() {
      isPaused = false
      if (this.harm() === 'dead') child = start()
      else child.kill('SIGKILL')
    },
    pause() {
      isPaused = !isPaused
      child.kill(isPaused ? 'SIGSTOP' : 'SIGCONT')
    },
    cut: () => (cable.isCut() ? cable.mend() : cable.cut()),
    async end() {
      if (this.harm() !== 'dead') {
        const gone = once(child, 'exit')
        child.kill('SIGKILL')
        await gone
      }
      cable.close()
    },
  }
}
