/** Where user code called a function of ctx. Taking one is cheap: the text is made only when somebody asks. */
export interface CallSite {
  describe(): string
}

type V8Error = ErrorConstructor & {
  stackTraceLimit?: number | undefined
  captureStackTrace?(target: object, below?: (...args: never[]) => unknown): void
}

/** `below` is the function whose caller is wanted. */
export function takeCallSite(below: (...args: never[]) => unknown): CallSite {
  const trace: { stack?: string } = {}
  const v8 = Error as V8Error
  if (v8.captureStackTrace === undefined) trace.stack = new Error().stack ?? ''
  else captureOneFrame(v8, trace, below)
  return new TakenCallSite(trace)
}

class TakenCallSite implements CallSite {
  readonly #trace: { stack?: string }

  constructor(trace: { stack?: string }) {
    this.#trace = trace
  }

  describe(): string {
    return firstFrame(this.#trace.stack ?? '')
  }
}

/** Each further frame would cost as much again. */
function captureOneFrame(v8: V8Error, trace: object, below: (...args: never[]) => unknown): void {
  const limit = v8.stackTraceLimit
  v8.stackTraceLimit = 1
  v8.captureStackTrace?.(trace, below)
  v8.stackTraceLimit = limit
}

function firstFrame(stack: string): string {
  const frame = stack.split('\n').find((line) => /^\s*at |@/.test(line))
  return frame === undefined ? 'at an unknown place' : frame.trim().replace(/^(?!at )/, 'at ')
}
