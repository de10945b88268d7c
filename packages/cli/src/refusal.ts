/** One plain sentence for whoever called; the exit code is 1. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
}

/** The same for a call that makes no sense as it is; the exit code is 2. */
export class Misuse extends Error {
  override readonly name = 'Misuse'
}
