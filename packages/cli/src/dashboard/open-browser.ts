import { spawn } from 'node:child_process'
import type { Terminal } from '../terminal/terminal'

const OPENERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Whoever has no browser there can still copy the address. */
export function openBrowser(url: string, { note }: Pick<Terminal, 'note'>): void {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true })
  child.on('error', () => note(`There is no ${program} that would open the address.`))
  child.unref()
}
