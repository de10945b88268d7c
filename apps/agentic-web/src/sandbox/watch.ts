import { readFileSync, statfsSync } from 'node:fs'
import type { Limits } from './inside'

/** Which limit a call ran into. */
export type Excess = 'time' | 'cpu' | 'memory' | 'files' | 'output'

const EVERY_MS = 50
const TICKS_A_SECOND = 100

/**
 * What the kernel bounds by process is added up here over all processes of a call: memory, processor time, and the
 * entries of its folders, each of which costs the kernel memory of its own. `first` is the sandbox's process 1.
 */
export function watchUse(first: number, limits: Limits, exceeded: (excess: Excess) => void): () => void {
  const timer = setInterval(() => {
    const excess = excessOf(first, limits)
    if (excess !== null) exceeded(excess)
  }, EVERY_MS)
  return () => clearInterval(timer)
}

function excessOf(first: number, limits: Limits): Excess | null {
  let bytes = 0
  let ticks = 0
  for (const id of withDescendants(first)) {
    bytes += residentBytes(id)
    ticks += ticksOf(id)
  }
  if (bytes > limits.memoryBytes) return 'memory'
  if (ticks / TICKS_A_SECOND > limits.cpuSeconds) return 'cpu'
  return entriesOf(first, limits) > limits.diskEntries ? 'files' : null
}

/** Whose parent ends becomes a child of process 1: none gets out of this tree. */
export function withDescendants(id: number): number[] {
  const children = read(`/proc/${id}/task/${id}/children`).trim()
  return [id, ...(children === '' ? [] : children.split(' ').flatMap((child) => withDescendants(Number(child))))]
}

function residentBytes(id: number): number {
  const kibi = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${id}/status`))?.[1]
  return Number(kibi ?? 0) * 1024
}

/** Its own, and those of its children that have ended. What comes after the name, which may hold anything. */
function ticksOf(id: number): number {
  const stat = read(`/proc/${id}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
}

const TMPFS = 0x01021994
const PAGE = 65_536

/** Until the sandbox has its own root, the process has the host's: what is not of the size that was asked for is not meant. */
function entriesOf(first: number, { diskBytes }: Limits): number {
  return ['session', 'tmp'].reduce((sum, folder) => {
    try {
      const { type, blocks, bsize, files, ffree } = statfsSync(`/proc/${first}/root/${folder}`)
      const more = blocks * bsize - diskBytes
      return type === TMPFS && more >= 0 && more < PAGE ? sum + files - ffree : sum
    } catch {
      // It has ended meanwhile.
      return sum
    }
  }, 0)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
