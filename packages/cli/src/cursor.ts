import type { RunCursor } from '@coji/durably'
import { Misuse } from './refusal'

const SEPARATOR = '~'

/** The place of a run, which need not be there any more when the list goes on. */
export function fromCursor({ createdAt, id }: RunCursor): string {
  return `${createdAt}${SEPARATOR}${id}`
}

export function toCursor(text: string): RunCursor {
  const [createdAt = '', id = ''] = text.split(SEPARATOR)
  if (id !== '' && !Number.isNaN(Date.parse(createdAt))) return { createdAt, id }
  throw new Misuse('A cursor is what the page before has said.')
}
