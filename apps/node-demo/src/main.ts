import { constants } from 'node:os'
import { type DemoOptions, parseArguments, USAGE } from './arguments'
import { runDemo } from './demo'
import { createDemoFolder } from './folder'
import { choosePaint, isCapable } from './paint'
import { createScreen, type Screen } from './screen'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type EndingSignal = (typeof SIGNALS)[number] | 'SIGPIPE'

/** npm passes on what the terminal has sent already, so one Ctrl-C can arrive twice. */
const SAME_SIGNAL_MS = 2_000

/** Aborts on the first signal, which leaves time to clean up. A later one ends the process at once. */
function listenForSignals(screen: Screen) {
  const controller = new AbortController()
  let first: { readonly signal: EndingSignal; readonly at: number } | null = null
  const end = (signal: EndingSignal): void => {
    screen.close()
    if (first !== null && performance.now() - first.at > SAME_SIGNAL_MS) process.exit(exitCodeOf(signal))
    first ??= { signal, at: performance.now() }
    controller.abort(new Error(`ended by ${signal}`))
  }
  for (const signal of SIGNALS) process.on(signal, () => end(signal))
  // Whoever read this has gone, as in `npm run demo | head`.
  process.stdout.on('error', () => end('SIGPIPE'))
  return { signal: controller.signal, received: () => first?.signal ?? null }
}

function exitCodeOf(signal: EndingSignal): number {
  return 128 + constants.signals[signal]
}

async function demonstrate(options: DemoOptions): Promise<number> {
  const terminal = { isTerminal: process.stdout.isTTY, environment: process.env }
  const paint = choosePaint({ wanted: options.color, ...terminal })
  const screen = createScreen({ output: process.stdout, paint, isLive: isCapable(terminal) })
  const ending = listenForSignals(screen)
  const folder = await createDemoFolder(options.db)
  try {
    return (await runDemo({ options, folder, screen, signal: ending.signal })) ? 0 : 1
  } catch (error) {
    const received = ending.received()
    if (received === null) throw error
    screen.close()
    screen.line(paint('dim', '  interrupted'))
    return exitCodeOf(received)
  } finally {
    screen.close()
    if (options.keep) screen.line(`  kept in ${folder.path}`)
    else await folder.remove()
  }
}

async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseArguments(argv)
  if (parsed.kind === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  if (parsed.kind === 'wrong') {
    process.stderr.write(`${parsed.message}\nTry --help.\n`)
    return 2
  }
  return demonstrate(parsed.options)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`\n  ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
