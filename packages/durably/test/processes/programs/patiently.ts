import { StorageError } from '../../../src/index'

/** On a machine that is busy with the other processes a read may find no connection in time. */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
    }
  }
}
