import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { chromium, type Browser, type BrowserContext } from 'playwright'
import { chromiumOptions } from '../../../../test/chromium'

/** How long it may take to end. */
const CLOSE_MS = 5000

/** A Chromium whose tabs are visible, hidden, throttled and frozen as those of a person are. */
export interface ChromiumProcess {
  readonly browser: Browser
  /** The profile. */
  readonly context: BrowserContext
  close(): Promise<void>
}

/** Playwright's own launch makes every page pretend to be in front, and a page in front cannot be frozen. */
export async function launchChromium(profile: string, options: { isWhole?: boolean }): Promise<ChromiumProcess> {
  const { executablePath = '', args = [] } = chromiumOptions(options)
  const own = [
    '--headless=new',
    '--remote-debugging-port=0',
    '--no-default-browser-check',
    `--user-data-dir=${profile}`,
  ]
  const child = spawn(executablePath, [...args, ...own, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const kill = () => void child.kill('SIGKILL')
  // Tests that are given up leave no browser behind.
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  try {
    return await connect(child)
  } catch (error) {
    kill()
    throw error
  }
}

async function connect(child: ChildProcess): Promise<ChromiumProcess> {
  const browser = await chromium.connectOverCDP(await endpointOf(child), { noDefaults: true })
  const [context] = browser.contexts()
  if (context === undefined) throw new Error('Chromium has no profile.')
  return { browser, context, close: () => close(browser, child) }
}

/** Asks it to end, and makes it when it does not. */
async function close(browser: Browser, child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  const impatience = setTimeout(() => void child.kill('SIGKILL'), CLOSE_MS)
  // What has died under way cannot be asked.
  const ask = async () => (await browser.newBrowserCDPSession()).send('Browser.close')
  await ask().catch(() => child.kill('SIGKILL'))
  await ended
  clearTimeout(impatience)
}

/** Chromium says on its error output where it listens. */
async function endpointOf(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error('Chromium has no error output.')
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line)
    const endpoint = /^DevTools listening on (\S+)/.exec(line)?.[1]
    if (endpoint === undefined) continue
    child.stderr.resume()
    return endpoint
  }
  throw new Error(`Chromium did not start: ${said.join('\n')}`)
}
