import type { Run } from '@coji/durably-core'

/** A piece of an explanation; `at` tells pieces apart. */
export interface ExplanationPart {
  readonly kind: 'text' | 'run' | 'instant'
  readonly text: string
  readonly at: number
}

const ID = /(?<!worker )\b[0-9A-HJKMNP-TV-Z]{26}\b/
const INSTANT = /\b\d{4}-\d\d-\d\dT[\d:.]+Z/
const NAMED = new RegExp(`(${ID.source}|${INSTANT.source})`)

/** What the engine tells programmers to call, as the page has it. */
const ON_THE_PAGE: readonly (readonly [call: RegExp, words: string])[] = [
  [/durably\.unpark\("[^"]+"\) lets it go on/, '“Let it go on” is for when that is mended'],
  [/durably\.failParked\("[^"]+"\) ends it/, '“End as failed” ends it'],
  [/durably\.explain\("[^"]+"\) says why/, 'its page says why'],
]

/** What the engine says of a run, without what stands beside it on the page, cut where it names runs and instants. */
export function partsOf(explanation: string, { id, jobName }: Pick<Run, 'id' | 'jobName'>): readonly ExplanationPart[] {
  const own = `Run ${id} of job "${jobName}" `
  const told = explanation.startsWith(own) ? `It ${explanation.slice(own.length)}` : explanation
  const words = ON_THE_PAGE.reduce((text, [call, instead]) => text.replace(call, instead), told)
  return words.split(NAMED).map((text, at) => {
    const isNamed = at % 2 === 1 && text !== id
    return { kind: isNamed ? (INSTANT.test(text) ? 'instant' : 'run') : 'text', text, at }
  })
}
