import { systemClock } from '@coji/durably-core'
import type { Reader } from './reader'

/** Between two statements the event loop turns: where the driver answers within the call, nothing else lets it. */
export function inTurns(reader: Reader): Reader {
  let isFirst = true
  return {
    async read(query) {
      if (!isFirst) await systemClock.turn?.()
      isFirst = false
      return reader.read(query)
    },
  }
}
