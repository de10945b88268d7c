import { readFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** Process 1 of a sandbox, as the host has it: by its number and the instant of its start, since numbers come again. */
export class FirstProcess {
  readonly id: number
  readonly #startedAt: string | null

  constructor(id: number) {
    this.id = id
    this.#startedAt = startOf(id)
  }

  /** The worker's own work comes first. */
  yield(): void {
    try {
      setPriority(this.id, constants.priority.PRIORITY_BELOW_NORMAL)
    } catch {
      // It has ended already, or is not ours to slow down: it has its limits all the same.
    }
  }

  kill(): void {
    if (this.#startedAt === null || startOf(this.id) !== this.#startedAt) return
    try {
      process.kill(this.id, 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** In ticks since the machine's. What comes after the name, which may hold anything. */
function startOf(id: number): string | null {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
