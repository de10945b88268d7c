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

/** What the engine says of a run, without what stands beside it on the page, cut where it names runs and instants. */
export function partsOf(explanation: string, { id, jobName }: Pick<Run, 'id' | 'jobName'>): readonly ExplanationPart[] {
  const own = `Run ${id} of job "${jobName}" `
  const words = explanation.startsWith(own) ? `It ${explanation.slice(own.length)}` : explanation
  return words.split(NAMED).map((text, at) => {
    const isNamed = at % 2 === 1 && text !== id
    return { kind: isNamed ? (INSTANT.test(text) ? 'instant' : 'run') : 'text', text, at }
  })
}
