import { HttpProblem } from './problem'

type Given = string | readonly string[] | Readonly<Record<string, string>>

/** An address's query as an object: what comes again is a list, and `labels[team]=red` is `{ labels: { team: 'red' } }`. */
export function readQuery(search: URLSearchParams): Readonly<Record<string, Given>> {
  const query = new Map<string, Given>()
  for (const [key, value] of search) {
    if (/(^|\[)__proto__(\]|$)/.test(key)) throw new HttpProblem('INVALID_REQUEST', 'Nothing may be named __proto__.')
    const [, name, property] = /^([^[\]]+)\[(.+)\]$/.exec(key) ?? []
    if (name === undefined || property === undefined) query.set(key, withAnother(query.get(key), value, key))
    else query.set(name, withProperty(query.get(name), [property, value], name))
  }
  return Object.fromEntries(query)
}

function withAnother(known: Given | undefined, value: string, key: string): Given {
  if (known === undefined) return value
  if (typeof known === 'string') return [known, value]
  if (Array.isArray(known)) return [...(known as readonly string[]), value]
  throw mixed(key)
}

function withProperty(known: Given | undefined, entry: readonly [string, string], name: string): Given {
  if (known === undefined) return Object.fromEntries([entry])
  if (typeof known === 'string' || Array.isArray(known)) throw mixed(name)
  return Object.fromEntries([...Object.entries(known), entry])
}

function mixed(name: string): HttpProblem {
  return new HttpProblem('INVALID_REQUEST', `"${name.slice(0, 100)}" is given both as a value and with properties.`)
}
