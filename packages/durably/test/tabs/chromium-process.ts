import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { chromium, type Browser, type BrowserContext } from 'playwright'
import { chromiumOptions } from '../../../../test/chromium'

/** A Chromium whose tabs are visible, hidden, throttled and frozen as those of a person are. */
export interface ChromiumProcess {
  readonly browser: Browser
  /** The profile. */
  readonly context: BrowserContext
  close(): Promise<void>
}

/** Playwright's own launch makes every page pretend to be in front, and a page in front cannot be frozen. */
export async function launchChromium(profile: string): Promise<ChromiumProcess> {
  const { executablePath = '', args = [] } = chromiumOptions()
  const own = [
    '--headless=new',
    '--remote-debugging-port=0',
    '--no-default-browser-check',
    `--user-data-dir=${profile}`,
  ]
  const child = spawn(executablePath, [...args, ...own, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const browser = await chromium.connectOverCDP(await endpointOf(child), { noDefaults: true })
  const [context] = browser.contexts()
  if (context === undefined) throw new Error('Chromium has no profile.')
  return {
    browser,
    context,
    async close() {
      const ended = once(child, 'exit')
      const session = await browser.newBrowserCDPSession()
      await session.send('Browser.close').catch(() => {})
      await ended
    },
  }
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
