import type { Run } from '@coji/durably'
import { Refusal } from '../refusal'
import type { OpenDatabase } from './open'

/** So much of an id says when its run was triggered, to the second or so. */
const LEAST_PREFIX = 8

/** By its id, or by the beginning of it where no other run has the same. */
export async function findRun({ durably, name }: OpenDatabase, id: string): Promise<Run> {
  const run = await durably.getRun(id)
  if (run !== null) return run
  if (id.length >= LEAST_PREFIX) {
    const found = await durably.getRuns({ idPrefix: id.toUpperCase(), limit: 3 })
    const [first, second] = found
    if (first !== undefined && second === undefined) return first
    if (first !== undefined) {
      throw new Refusal(
        `Several runs begin with ${id}: ${found.map((each) => each.id).join(', ')}. Give more of the id.`,
      )
    }
  }
  throw new Refusal(
    `There is no run ${id} in ${name}. It may have been deleted; durably runs lists those that are there.`,
  )
}
