import type { Paint } from './paint'
import { renderProgressBar } from './progress-bar'

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'
const CLEAR_LINE = '\r\u001b[2K'
const DEFAULT_WIDTH = 80
/** Without a live line, one line is printed each time the bar passes a multiple of this. */
const PLAIN_STRIDE = 0.25

export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface ProgressView {
  readonly label: string
  readonly fraction: number
  readonly message: string
}

/** Lines that stay, and one line at the end that moves. On anything but a terminal, lines only. */
export interface Screen {
  readonly paint: Paint
  line(text?: string): void
  progress(view: ProgressView): void
  /** Leaves the bar where it is and goes on below it. */
  settle(): void
  /** Takes the moving line away and gives the cursor back. Once is enough, more does no harm. */
  close(): void
}

export interface ScreenParams {
  readonly output: Output
  readonly paint: Paint
  readonly isLive: boolean
}

export function createScreen({ output, paint, isLive }: ScreenParams): Screen {
  return isLive ? createLiveScreen(output, paint) : createPlainScreen(output, paint)
}

function createLiveScreen(output: Output, paint: Paint): Screen {
  let bar = ''
  let isHidden = false
  const draw = (): void => {
    if (!isHidden) output.write(HIDE_CURSOR)
    isHidden = true
    output.write(CLEAR_LINE + bar)
  }
  return {
    paint,
    line: (text = '') => {
      output.write(bar === '' ? `${text}\n` : `${CLEAR_LINE}${text}\n`)
      if (bar !== '') draw()
    },
    progress: (view) => {
      const next = renderProgressBar({ ...view, width: output.columns ?? DEFAULT_WIDTH, paint })
      if (next === bar) return
      bar = next
      draw()
    },
    settle: () => {
      if (bar !== '') output.write('\n')
      bar = ''
    },
    close: () => {
      if (bar !== '') output.write(CLEAR_LINE)
      if (isHidden) output.write(SHOW_CURSOR)
      bar = ''
      isHidden = false
    },
  }
}

function createPlainScreen(output: Output, paint: Paint): Screen {
  let shown = ''
  return {
    paint,
    line: (text = '') => output.write(`${text}\n`),
    progress: (view) => {
      const step = Math.floor(view.fraction / PLAIN_STRIDE)
      const mark = `${view.label} ${step}`
      if (mark === shown || step === 0) return
      shown = mark
      output.write(`${renderProgressBar({ ...view, width: DEFAULT_WIDTH, paint }).trimEnd()}\n`)
    },
    settle: () => {},
    close: () => {},
  }
}
