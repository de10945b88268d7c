import type { Paint } from './paint'

export interface ProgressBarParams {
  readonly label: string
  /** From 0 to 1. */
  readonly fraction: number
  readonly message: string
  /** The columns there are. */
  readonly width: number
  readonly paint: Paint
}

const INDENT = '  '
const LABEL_WIDTH = 12
const MESSAGE_WIDTH = 17
const SMALLEST_BAR = 6

/** One line: label, bar, per cent, message. What does not fit is left out, from the end. */
export function renderProgressBar({ label, fraction, message, width, paint }: ProgressBarParams): string {
  const percent = `${String(Math.floor(fraction * 100)).padStart(3)} %`
  const head = `${INDENT}${label.padEnd(LABEL_WIDTH)} `
  const room = width - 1 - head.length - percent.length - 1
  const withMessage = room - MESSAGE_WIDTH - 2
  const bar = Math.min(withMessage >= SMALLEST_BAR ? withMessage : room, 40)
  if (bar < SMALLEST_BAR) return `${head}${percent}`.slice(0, width - 1)
  const full = Math.round(fraction * bar)
  const drawn = paint('cyan', '█'.repeat(full)) + paint('dim', '░'.repeat(bar - full))
  const tail = withMessage >= SMALLEST_BAR ? `  ${paint('dim', message.slice(0, MESSAGE_WIDTH))}` : ''
  return `${head}${drawn} ${percent}${tail}`
}
