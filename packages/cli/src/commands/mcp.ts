import { once } from 'node:events'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { withDatabase } from '../database/open'
import { createMcpServer } from '../mcp/tools'
import type { CommonOptions } from '../options'
import type { Terminal } from '../terminal/terminal'

/** `durably mcp`: until whoever started it closes its input. */
export function serveMcp(options: CommonOptions, { note, signal }: Terminal): Promise<void> {
  return withDatabase(options, {}, async (database) => {
    const serving = serveStdio(() => createMcpServer(database), { onerror: ({ message }) => note(message) })
    await Promise.race([once(process.stdin, 'close'), once(process.stdin, 'end'), once(signal, 'abort')])
    await serving.close()
  })
}
