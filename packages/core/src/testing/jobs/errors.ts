import { DurablyError } from '../../base'

/** Nothing that a test does brings the run to its end. The message says what it waits for: send that, or stub the step. */
export class NeverEndsError extends DurablyError {
  override readonly name = 'NeverEndsError'

  constructor(explanation: string, nowMs: number, why: string) {
    super('NEVER_ENDS', `${explanation} It is ${new Date(nowMs).toISOString()} in this test, and ${why}.`)
  }
}

/** The run of a test has ended, and did not wait for the signal. Look at its steps, and at the name of the signal. */
export class NeverWaitsError extends DurablyError {
  override readonly name = 'NeverWaitsError'

  constructor(runId: string, status: string, signalName: string) {
    super('NEVER_WAITS', `Run ${runId} is ${status}, and did not wait for "${signalName}".`)
  }
}

/** No step asked for a stub of the test: look at its name. Stubs that several tests share need `allowUnusedStubs`. */
export class UnusedStubError extends DurablyError {
  override readonly name = 'UnusedStubError'

  constructor(unused: readonly string[], asked: readonly string[]) {
    const list = (names: readonly string[]) => names.map((each) => `"${each}"`).join(', ')
    const steps = asked.length === 0 ? 'No step was run' : `The steps that were run are ${list(asked)}`
    super(
      'UNUSED_STUB',
      `No step asked for the stub of ${list(unused)}. ${steps}. Stubs that several tests share need allowUnusedStubs.`,
    )
  }
}
