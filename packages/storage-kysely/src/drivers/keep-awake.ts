/** Connections at rest do not keep a process from ending. Who waits for their end would wait in vain. */
export async function keepAwake<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 60_000)
  try {
    return await work
  } finally {
    clearInterval(timer)
  }
}
