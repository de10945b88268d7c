import { z } from 'zod'
import { defineTool } from './tool'

const path = z.string().max(200).describe('Relative, such as notes/today.md')

export const listFiles = defineTool({
  name: 'list_files',
  description: 'Lists the files of this session.',
  input: z.object({}),
  sideEffects: false,
  needsApproval: false,
  execute: async (_input, { files }) => ({ files: await files.list() }),
})

const readInput = z.object({ path })

export const readFile = defineTool({
  name: 'read_file',
  description: 'Reads a text file of this session, its first 100,000 characters.',
  input: readInput,
  sideEffects: false,
  needsApproval: false,
  async execute(given: z.output<typeof readInput>, { files }) {
    const bytes = await files.read(given.path)
    if (bytes === null) throw new Error(`There is no file "${given.path}".`)
    return { text: textOf(given.path, bytes).slice(0, 100_000) }
  },
})

const writeInput = z.object({ path, text: z.string().max(500_000) })

/** Writing it twice is writing it once: the files of a session are kept with the result. */
export const writeFile = defineTool({
  name: 'write_file',
  description: 'Writes a text file of this session. The user is asked before.',
  input: writeInput,
  sideEffects: false,
  needsApproval: true,
  async execute(given: z.output<typeof writeInput>, { files }) {
    const bytes = new TextEncoder().encode(given.text)
    await files.write(given.path, bytes)
    return { written: bytes.length }
  },
})

/** A picture as text would only fill the model's memory. */
function textOf(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error(`"${path}" is no text file.`)
  }
}
