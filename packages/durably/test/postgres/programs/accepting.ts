/** A schema that takes what it gets. These programs start all the time, and a library for it is half of their start. */
export function accepting<T>() {
  return {
    '~standard': { version: 1, vendor: 'durably-test', validate: (value: unknown) => ({ value: value as T }) },
  } as const
}
