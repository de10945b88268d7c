import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'
import { type Browser, type BrowserContext, chromium } from 'playwright'
import { expect } from 'vitest'
import { PATIENCE_MS } from '../../../test/pace'
import { chromiumOptions } from '../../../test/chromium'

export interface KillableBrowser {
  readonly context: BrowserContext
  /** SIGKILL for all its processes; resolves when none is left. */
  kill(): Promise<void>
}

/** A browser in a process group of its own. */
export async function startKillableBrowser(profile: string): Promise<KillableBrowser> {
  const { executablePath = '', args = [] } = chromiumOptions()
  const flags = ['--headless=new', '--remote-debugging-port=0', `--user-data-dir=${profile}`, '--disable-breakpad']
  const child = spawn(executablePath, [...args, ...flags, 'about:blank'], { detached: true })
  const { pid } = child
  if (pid === undefined) throw new Error(`${executablePath} does not start.`)
  const killAll = () => process.kill(-pid, 'SIGKILL')
  // A test that is given up leaves no browser behind.
  process.once('exit', killAll)
  const browser = await connect(child.stderr)
  const [context] = browser.contexts()
  if (context === undefined) throw new Error('The browser has no context.')
  context.setDefaultTimeout(PATIENCE_MS)
  return {
    context,
    async kill() {
      process.off('exit', killAll)
      killAll()
      await expect.poll(() => livingOf(pid)).toBe(0)
      await browser.close()
    },
  }
}

async function connect(stderr: NodeJS.ReadableStream): Promise<Browser> {
  let text = ''
  const address = await new Promise<string>((resolve, reject) => {
    stderr.on('data', (more: Buffer) => {
      text += more.toString()
      const found = /listening on (ws:\S+)/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    })
    stderr.on('close', () => reject(new Error(`The browser ended:\n${text}`)))
  })
  return chromium.connectOverCDP(address)
}

/** Those that are only waiting to be buried do not count. */
async function livingOf(group: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pgid=,stat='])
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/))
  return rows.filter(([pgid, state = 'Z']) => Number(pgid) === group && !state.startsWith('Z')).length
}
