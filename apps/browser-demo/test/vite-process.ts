import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const APP = fileURLToPath(new URL('..', import.meta.url))
const VITE = join(createRequire(import.meta.url).resolve('vite/package.json'), '../bin/vite.js')

export interface Site {
  readonly url: string
  close(): Promise<void>
}

/** The build of the demo as it stands in the sources, in a process of its own: vitest's NODE_ENV would make it a development build. */
export async function buildDemo(folder: string): Promise<void> {
  const argv = [VITE, 'build', '--mode', 'source', '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn']
  await promisify(execFile)(process.execPath, argv, { cwd: APP, env: cleanEnvironment() })
}

/** `vite preview --outDir …` or `vite dev`, on a free port. */
export async function serveDemo(argv: readonly string[]): Promise<Site> {
  const child = spawn(process.execPath, [VITE, ...argv, '--port', '0'], { cwd: APP, env: cleanEnvironment() })
  const ended = once(child, 'exit')
  let text = ''
  const url = await new Promise<string>((resolve, reject) => {
    const read = (more: Buffer): void => {
      text += more.toString()
      const found = /Local: +(http:\S+)/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.on('exit', (code) => reject(new Error(`vite ${argv.join(' ')} ended with ${code}:\n${text}`)))
  })
  return {
    url,
    async close() {
      child.kill()
      await ended
    },
  }
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(NODE_ENV|NODE_OPTIONS|VITE|TEST|DEV|PROD|MODE)/.test(name),
  )
  return { ...Object.fromEntries(kept), NO_COLOR: '1' }
}
