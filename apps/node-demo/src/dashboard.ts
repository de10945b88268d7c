import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export interface Dashboard {
  readonly url: string
  close(): Promise<void>
}

/** `durably dashboard`, as anybody would call it on their own database. */
export async function openDashboard(db: string): Promise<Dashboard> {
  const command = join(
    dirname(createRequire(import.meta.url).resolve('@coji/durably-cli/package.json')),
    'dist/durably.js',
  )
  const child = spawn(process.execPath, [command, 'dashboard', '--db', db], { stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const [printed] = (await Promise.race([once(child.stdout, 'data'), closed])) as [Buffer | number | null]
  if (!(printed instanceof Buffer)) throw new Error(`The dashboard did not start: ${complaints.trim()}`)
  return {
    url: printed.toString().trim(),
    async close() {
      child.kill()
      await closed
    },
  }
}
