/**
 * What `work` comes to, unless it takes too long: then it goes on, and `onLate` gets what nobody waits for any more. It makes
 * two promises and no more: every statement on Postgres passes here.
 */
export function within<T>(
  work: Promise<T>,
  ms: number,
  { error, onLate = () => {} }: { error(): Error; onLate?(value: T): void },
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      reject(error())
    }, ms)
    work.then(
      (value) => {
        clearTimeout(timer)
        if (isLate) onLate(value)
        else resolve(value)
      },
      (cause: unknown) => {
        clearTimeout(timer)
        reject(cause)
      },
    )
  })
}
