/** What is there that nobody needs any more. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

export function usedHeap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** As `expect.poll(handles)` counts them: it has a timer of its own while it asks. */
export async function handlesWhilePolled(): Promise<number> {
  let count = 0
  const look = () => {
    count = handles()
    return count
  }
  await expect.poll(look).toBeGreaterThan(0)
  return count
}

/** What keeps a process alive. */
export function handles(): number {
  const kinds = ['TCPSocketWrap', 'TCPServerWrap', 'Timeout']
  return process.getActiveResourcesInfo().filter((kind) => kinds.includes(kind)).length
}
