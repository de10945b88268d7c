export interface Gate {
  readonly opened: Promise<void>
  open(): void
  fail(error: unknown): void
}

/** A promise settled from outside. */
export function createGate(): Gate {
  let open = () => {}
  let fail = (_error: unknown) => {}
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open, fail }
}
