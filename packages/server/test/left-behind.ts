/** What is there that nobody needs any more. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

export function usedHeap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** What keeps a process alive. */
export function handles(): number {
  const kinds = ['TCPSocketWrap', 'TCPServerWrap', 'Timeout']
  return process.getActiveResourcesInfo().filter((kind) => kinds.includes(kind)).length
}
