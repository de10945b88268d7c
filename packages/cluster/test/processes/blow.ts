import { pick, type Random } from '../simulation/random'

/** What happens to one of several processes, and what has to have happened before the next of them is hit. */
export interface Blow {
  readonly place: number
  /** `sleep`: until another one has taken over what it does. */
  readonly kind: 'kill' | 'nap' | 'sleep'
  readonly napMs: number
  /** So many instants have fired meanwhile. */
  readonly instants: number
}

const LONGEST_NAP_MS = 1500

export function chooseBlow(random: Random, processes: number): Blow {
  const chance = random()
  return {
    place: Math.floor(random() * processes),
    kind: chance < 0.45 ? 'kill' : chance < 0.9 ? 'nap' : 'sleep',
    napMs: Math.floor(random() * LONGEST_NAP_MS),
    instants: pick(random, [0, 0, 2, 10, 30]),
  }
}
