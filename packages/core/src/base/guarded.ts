/** Calls a function of the application, which may throw at once or, if it is async, reject later. */
export function guarded(call: () => unknown, onFailure: (error: unknown) => void): void {
  try {
    onRejection(call(), onFailure)
  } catch (error) {
    onFailure(error)
  }
}

/** For what an application returned: a promise of which nobody hears that it rejected would end the process. */
export function onRejection(returned: unknown, onFailure: (error: unknown) => void): void {
  if (returned instanceof Promise) returned.catch(onFailure)
}

/** What nobody awaits must not end the process when it fails; somebody else is told. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
