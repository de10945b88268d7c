import { InvalidOptionError } from '@coji/durably-core'
import { refuseBadText, requireBoolean, requireInteger } from '@coji/durably-core/extend'

/** Conditions of a list. What is left out is none. */
interface Conditions {
  readonly texts: Readonly<Record<string, unknown>>
  readonly flags: Readonly<Record<string, boolean | undefined>>
  readonly limit?: number | undefined
}

/** Databases take what is none of these for something else, or each refuses it in its own words. */
export function refuseBadConditions({ texts, flags, limit }: Conditions): void {
  for (const [name, text] of Object.entries(texts)) refuseBadText(name, text)
  for (const [name, flag] of Object.entries(flags)) if (flag !== undefined) requireBoolean(name, flag)
  if (limit !== undefined) requireInteger('limit', limit, { from: 1 })
}

/** The last one of the page before, or these of its properties. */
export function refuseBadPlace(after: unknown, names: readonly string[]): void {
  if (after === undefined) return
  const place = Object(after) as Readonly<Record<string, unknown>>
  for (const name of names) {
    if (typeof place[name] !== 'string') {
      throw new InvalidOptionError(`after must be the last one of the page before, or its ${names.join(' and ')}.`)
    }
    refuseBadText(`${name} of after`, place[name])
  }
}
