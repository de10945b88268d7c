import { parseArgs } from 'node:util'

const MIN_ROWS = 1_000
const MAX_ROWS = 5_000_000
const DEFAULT_ROWS = 500_000

export interface DemoOptions {
  /** A database file of the user's, which is never deleted; `null` for one in a temporary folder. */
  readonly db: string | null
  readonly keep: boolean
  readonly rows: number
  readonly color: boolean
  /** Serve the dashboard on the database of the demo, and leave it open at the end. */
  readonly dashboard: boolean
}

export type Arguments =
  | { readonly kind: 'run'; readonly options: DemoOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string }

export const USAGE = `durably: a job killed in the middle, and carried on

  npm run demo -- [options]

  --db <path>    the database file (default: in a temporary
                 folder); a file named here is not deleted
  --rows <n>     rows of CSV (default: ${DEFAULT_ROWS})
  --dashboard    show it all in a browser as well
  --keep         keep the temporary folder
  --no-color     no colours (NO_COLOR=1 does the same)
  --help         this text
`

export function parseArguments(argv: readonly string[]): Arguments {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        db: { type: 'string' },
        rows: { type: 'string', default: String(DEFAULT_ROWS) },
        keep: { type: 'boolean', default: false },
        'no-color': { type: 'boolean', default: false },
        dashboard: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) return { kind: 'help' }
    if (values.db === '') return { kind: 'wrong', message: '--db needs the path of a file.' }
    const rows = Number(values.rows.replaceAll(/[_,]/g, ''))
    if (!Number.isInteger(rows) || rows < MIN_ROWS || rows > MAX_ROWS) {
      return { kind: 'wrong', message: `--rows takes a whole number from ${MIN_ROWS} to ${MAX_ROWS}.` }
    }
    const { db = null, keep, dashboard, 'no-color': isPlain } = values
    return { kind: 'run', options: { db, keep, rows, dashboard, color: !isPlain } }
  } catch (error) {
    return { kind: 'wrong', message: error instanceof Error ? error.message : String(error) }
  }
}
