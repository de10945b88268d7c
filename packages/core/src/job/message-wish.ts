import { InvalidOptionError, type OptionNames, refuseBadKey, refuseUnknownOptions } from '../base'

/** What may be asked of a value in a payload. */
export type WishedValue = string | number | boolean | null

/** Messages of a type, all of them or those whose payload has these values. */
export interface MessageWish {
  /** As `publish()` has it. */
  readonly type: string
  /** By their places in the payload, such as `{ 'user.plan': 'pro' }`: all of them have to be equal. */
  readonly where?: Readonly<Record<string, WishedValue>> | undefined
}

/** Which messages a job wants: of one type, or of several. */
export type MessageWishes = string | MessageWish | readonly (string | MessageWish)[]

const WISH: OptionNames<MessageWish> = { type: true, where: true }

/** Checked. */
export function requireWishes(on: MessageWishes | undefined, what: string): readonly MessageWish[] {
  if (on === undefined) return NONE
  const list = Array.isArray(on) ? (on as readonly (string | MessageWish)[]) : [on as string | MessageWish]
  const wishes = list.map((each) => requireWish(each, what))
  const types = wishes.map(({ type }) => type)
  const twice = types.find((type, index) => types.indexOf(type) !== index)
  if (twice !== undefined) throw new InvalidOptionError(`${what} wants "${twice}" twice.`)
  return wishes
}

const NONE: readonly MessageWish[] = Object.freeze([])

function requireWish(given: string | MessageWish, what: string): MessageWish {
  const wish = typeof given === 'string' ? { type: given } : given
  refuseUnknownOptions(`on of ${what}`, wish, WISH)
  refuseBadKey(`on of ${what}`, wish.type)
  if (wish.type === undefined) throw new InvalidOptionError(`on of ${what} needs the type of a message.`)
  for (const [place, value] of Object.entries(wish.where ?? {})) {
    if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) continue
    throw new InvalidOptionError(`where of ${what}: "${place}" must be a text, a number, a boolean or null.`)
  }
  return wish
}
