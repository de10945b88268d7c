import { Argument, Command } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { CHANGES } from './changes'
import type { ChangeOptions } from './commands/change'
import type { DashboardOptions } from './commands/dashboard'
import type { LogsOptions } from './commands/logs'
import type { MigrateOptions } from './commands/migrate'
import type { RunsOptions } from './commands/runs'
import type { SignalOptions } from './commands/signal'
import { type CommonOptions, databaseOptions, filterOptions, integerFrom, JSON_OPTION } from './options'
import type { Terminal } from './terminal/terminal'

/** Every command, with its options; each loads what it needs when it is called. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command('durably')
    .description(manifest.description)
    .version(manifest.version)
    .showHelpAfterError('(--help shows what there is)')
  addReading(program, terminal)
  addChange(program, 'retry', terminal)
  addChange(program, 'cancel', terminal)
  addUnpark(program, terminal)
  addSignal(program, terminal)
  addMigrate(program, terminal)
  addServers(program, terminal)
  return program
}

/** A command on a database. */
function command(program: Command, name: string, description: string): Command {
  const made = program.command(name).description(description)
  for (const option of databaseOptions()) made.addOption(option)
  return made
}

function addReading(program: Command, terminal: Terminal): void {
  command(program, 'status', 'how many runs there are of each status, what waits longest, and who works')
    .addOption(JSON_OPTION)
    .action(async (options: CommonOptions) => {
      const { showStatus } = await import('./commands/status')
      await showStatus(options, terminal)
    })
  const runs = command(program, 'runs', 'list runs, newest first')
  for (const option of filterOptions()) runs.addOption(option)
  runs
    .option('-n, --limit <number>', 'so many at most', integerFrom(1, 10_000), 20)
    .option('--cursor <cursor>', 'go on where the page before has ended')
    .addOption(JSON_OPTION)
    .action(async (options: RunsOptions) => {
      const { listRuns } = await import('./commands/runs')
      await listRuns(options, terminal)
    })
  command(program, 'run', 'show a run: why it is where it is, its steps, its error')
    .alias('show')
    .addArgument(new Argument('<id>', RUN_ID))
    .addOption(JSON_OPTION)
    .action(async (id: string, options: CommonOptions) => {
      const { showRun } = await import('./commands/run')
      await showRun(id, options, terminal)
    })
  command(program, 'logs', 'print what a run has logged')
    .addArgument(new Argument('<id>', RUN_ID))
    .option('-f, --follow', 'go on until the run has ended')
    .addOption(JSON_OPTION)
    .action(async (id: string, options: LogsOptions) => {
      const { showLogs } = await import('./commands/logs')
      await showLogs(id, options, terminal)
    })
}

const RUN_ID = 'the id of the run, or the beginning of it'

const CHANGE_WORDS = {
  retry: 'start failed, timed out or cancelled runs again; completed steps stay',
  cancel: 'end runs that wait, and have those that are running end soon',
  unpark: 'let parked runs go on, after the code they were parked for is back',
} as const

/** A command for one run, or for all that a filter finds. */
function changeCommand(program: Command, name: keyof typeof CHANGE_WORDS): Command {
  const made = command(program, name, CHANGE_WORDS[name]).addArgument(new Argument('[id]', RUN_ID))
  const { statuses } = CHANGES[name]
  const options = filterOptions(statuses).filter(({ long }) => name !== 'unpark' || !IMPLIED.includes(String(long)))
  for (const option of options) made.addOption(option)
  return made
    .option('--all', 'every run that it can be done to')
    .option('--dry-run', 'only show which runs these are')
    .option('-y, --yes', 'do not ask')
    .addOption(JSON_OPTION)
}

/** Of a parked run. */
const IMPLIED = ['--status', '--waits-for', '--error-code']

function addChange(program: Command, name: 'retry' | 'cancel', terminal: Terminal): void {
  changeCommand(program, name).action(async (id: string | undefined, options: ChangeOptions) => {
    const { changeRuns } = await import('./commands/change')
    await changeRuns({ change: CHANGES[name], id, options }, terminal)
  })
}

function addUnpark(program: Command, terminal: Terminal): void {
  changeCommand(program, 'unpark')
    .option('--fail', 'end them as failed instead')
    .action(async (id: string | undefined, options: ChangeOptions & { readonly fail?: boolean }) => {
      const { changeRuns } = await import('./commands/change')
      const change = options.fail === true ? CHANGES.failParked : CHANGES.unpark
      await changeRuns({ change, id, options }, terminal)
    })
}

function addSignal(program: Command, terminal: Terminal): void {
  const signal = command(program, 'signal', 'hand a run what it waits for, or will')
    .addArgument(new Argument('<id>', RUN_ID))
    .addArgument(new Argument('<name>', 'the name of the signal'))
    .addArgument(new Argument('[payload]', `what it brings, as JSON: '{ "approved": true }'`))
    .option('--dedupe-key <key>', 'send it once, however often this is called')
    .addOption(JSON_OPTION)
  signal.action(async (id: string, name: string, payload: string | undefined) => {
    const { sendSignal } = await import('./commands/signal')
    await sendSignal({ id, name, payload, options: signal.opts<SignalOptions>() }, terminal)
  })
}

function addMigrate(program: Command, terminal: Terminal): void {
  command(program, 'migrate', "bring durably's tables up to date, or make them")
    .option('--dry-run', 'only show what would be done')
    .addOption(JSON_OPTION)
    .action(async (options: MigrateOptions) => {
      const { migrateTables } = await import('./commands/migrate')
      await migrateTables(options, terminal)
    })
}

function addServers(program: Command, terminal: Terminal): void {
  command(program, 'dashboard', 'serve a page with all runs, to this machine')
    .option('-p, --port <number>', 'the port (default: 4777, or a free one)', integerFrom(0, 65_535))
    .option('--host <address>', 'the address to listen at; others than this one are open to the network', '127.0.0.1')
    .option('--write', 'let runs be cancelled, retried and deleted')
    .option('--tenant <name>', 'show the runs of this tenant only')
    .option('--open', 'open it in the browser')
    .addOption(JSON_OPTION)
    .action(async (options: DashboardOptions) => {
      const { serveDashboard } = await import('./commands/dashboard')
      await serveDashboard(options, terminal)
    })
  command(
    program,
    'mcp',
    'let a coding agent ask what failed and why (Model Context Protocol over stdio, read-only)',
  ).action(async (options: CommonOptions) => {
    const { serveMcp } = await import('./commands/mcp')
    await serveMcp(options, terminal)
  })
}
