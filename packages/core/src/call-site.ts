/** Where user code called a function of ctx. Taking one is cheap: the text is made only when somebody asks. */
export interface CallSite {
  describe(): string
}

type V8Error = ErrorConstructor & { captureStackTrace?(target: object, below?: (...args: never[]) => unknown): void }

/** `below` is the function whose caller is wanted. */
export function takeCallSite(below: (...args: never[]) => unknown): CallSite {
  const trace: { stack?: string } = {}
  const capture = (Error as V8Error).captureStackTrace
  if (capture === undefined) trace.stack = new Error().stack ?? ''
  else capture(trace, below)
  return { describe: () => firstFrame(trace.stack ?? '') }
}

function firstFrame(stack: string): string {
  const frame = stack.split('\n').find((line) => /^\s*at |@/.test(line))
  return frame === undefined ? 'at an unknown place' : frame.trim().replace(/^(?!at )/, 'at ')
}
