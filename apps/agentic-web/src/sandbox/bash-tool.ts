import { z } from 'zod'
import type { SessionFile } from '../files/session-file'
import { type AnyTool, defineTool, type SessionFiles } from '../tools/tool'
import type { Sandbox, SandboxResult } from './sandbox'

const ENDED_BY: Readonly<Record<NonNullable<SandboxResult['endedBy']>, string>> = {
  time: 'It took too long and was ended. The files of the session are as before.',
  cpu: 'It used too much processor time and was ended. The files of the session are as before.',
  memory: 'It used too much memory and was ended. The files of the session are as before.',
  files: 'It made too many or too large files and was ended. The files of the session are as before.',
  output: 'It wrote too much output and was ended. The files of the session are as before.',
  itself: 'It ended the sandbox that it was in. The files of the session are as before.',
}

const MAX_COMMAND = 20_000

/** A second call finds the files as the first one found them, and reaches nothing else: it may be repeated. */
export function createBashTool(sandbox: Sandbox): AnyTool {
  return defineTool({
    name: 'bash',
    description:
      'Runs a bash command in a sandbox on Linux: no network, no installed packages but the usual ones. Its folder has the ' +
      'files of the session, and what it writes there is kept. Everything else is gone afterwards, processes too.',
    input: z.strictObject({
      command: z
        .string()
        .min(1)
        .max(MAX_COMMAND)
        .refine((command) => !command.includes('\0'), 'A command has no NUL characters.')
        .describe('for bash -c; may have several lines'),
    }),
    sideEffects: false,
    needsApproval: true,
    execute: async ({ command }, { files, signal }) => {
      const result = await sandbox.run({ command, files: await readAll(files), signal })
      for (const path of result.changes.removed) await files.remove(path)
      for (const { path, content } of result.changes.written) await files.write(path, content)
      return told(result)
    },
  })
}

async function readAll(files: SessionFiles): Promise<SessionFile[]> {
  const all: SessionFile[] = []
  for (const { path } of await files.list()) {
    const content = await files.read(path)
    if (content !== null) all.push({ path, content })
  }
  return all
}

function told({ output, exitCode, endedBy, changes, refused }: SandboxResult) {
  const notes = [
    ...(endedBy === null ? [] : [ENDED_BY[endedBy]]),
    ...(refused === null ? [] : [`Its files were not kept. ${refused}`]),
  ]
  return {
    exitCode,
    output: output.text,
    written: changes.written.map(({ path }) => path),
    removed: changes.removed,
    ...(notes.length > 0 && { note: notes.join(' ') }),
  }
}
