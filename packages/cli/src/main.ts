import { type Command, CommanderError } from 'commander'
import { createProgram } from './program'
import { Misuse, Refusal } from './refusal'
import { createTerminal, type Streams } from './terminal/terminal'

const [DONE, REFUSED, MISUSED, INTERRUPTED] = [0, 1, 2, 130]

/** Runs a command and answers with the exit code. */
export async function main(argv: readonly string[], streams: Streams): Promise<number> {
  const program = createProgram(createTerminal(streams))
  for (const command of [program, ...program.commands]) connect(command, streams)
  try {
    await program.parseAsync(argv, { from: 'user' })
    return DONE
  } catch (error) {
    if (streams.signal.aborted) return INTERRUPTED
    if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED
    streams.stderr.write(`${describe(error)}\n`)
    return error instanceof Misuse ? MISUSED : REFUSED
  }
}

function connect(command: Command, { stdout, stderr }: Streams): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
  })
}

/** What nobody has foreseen says where it comes from. */
function describe(error: unknown): string {
  if (error instanceof Refusal || error instanceof Misuse) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
