const CONSTANTS = new Map([
  ['pi', Math.PI],
  ['e', Math.E],
])

const FUNCTIONS = new Map<string, (...values: number[]) => number>([
  ['sqrt', Math.sqrt],
  ['abs', Math.abs],
  ['round', Math.round],
  ['floor', Math.floor],
  ['ceil', Math.ceil],
  ['ln', Math.log],
  ['log10', Math.log10],
  ['log2', Math.log2],
  ['exp', Math.exp],
  ['sin', Math.sin],
  ['cos', Math.cos],
  ['tan', Math.tan],
])
const OF_MANY = new Map<string, (...values: number[]) => number>([
  ['min', Math.min],
  ['max', Math.max],
])

const TOKEN = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([a-zA-Z]\w*)|(\*\*|[-+*/%^(),]))/y
const DEPTH = 100

/** What an expression comes to. Throws with what is wrong and where. */
export function compute(expression: string): number {
  const value = new Parser(expression).parse()
  if (!Number.isFinite(value)) throw new Error(`${expression} has no finite value.`)
  return value
}

type Token = { readonly kind: 'number' | 'name' | 'sign'; readonly text: string; readonly at: number }

/** Each method reads what binds more tightly by the next one. */
class Parser {
  readonly #tokens: Token[]
  #next = 0
  #depth = 0

  constructor(text: string) {
    this.#tokens = tokensOf(text)
  }

  parse(): number {
    const value = this.#sum()
    this.#expect('the end', this.#tokens.length === this.#next)
    return value
  }

  #sum(): number {
    let value = this.#product()
    for (;;) {
      if (this.#take('+')) value += this.#product()
      else if (this.#take('-')) value -= this.#product()
      else return value
    }
  }

  #product(): number {
    let value = this.#signed()
    for (;;) {
      if (this.#take('*')) value *= this.#signed()
      else if (this.#take('/')) value = divided(value, this.#signed())
      else if (this.#take('%')) value %= this.#signed()
      else return value
    }
  }

  /** -2^2 is -4, as in mathematics; 2^-1 is 0.5, and 2^3^2 is 2^9. */
  #signed(): number {
    if (++this.#depth > DEPTH) throw new Error('It is nested too deeply.')
    const value = this.#take('-') ? -this.#signed() : this.#take('+') ? this.#signed() : this.#power()
    this.#depth--
    return value
  }

  #power(): number {
    const base = this.#atom()
    return this.#take('^') || this.#take('**') ? base ** this.#signed() : base
  }

  #atom(): number {
    if (this.#take('(')) return this.#closed(this.#sum())
    const token = this.#tokens[this.#next]
    this.#expect('a number', token !== undefined && token.kind !== 'sign')
    this.#next++
    return token?.kind === 'number' ? Number(token.text) : this.#named(token?.text ?? '')
  }

  #named(name: string): number {
    if (!this.#take('(')) return CONSTANTS.get(name) ?? unknown(name)
    const values = [this.#sum()]
    while (this.#take(',')) values.push(this.#sum())
    this.#closed(0)
    const ofOne = FUNCTIONS.get(name)
    if (ofOne !== undefined && values.length !== 1) throw new Error(`${name} takes one value, not ${values.length}.`)
    return (ofOne ?? OF_MANY.get(name) ?? unknown(name))(...values)
  }

  #closed(value: number): number {
    this.#expect(')', this.#take(')'))
    return value
  }

  #take(sign: string): boolean {
    const token = this.#tokens[this.#next]
    if (token?.kind !== 'sign' || token.text !== sign) return false
    this.#next++
    return true
  }

  #expect(what: string, isThere: boolean): void {
    if (isThere) return
    const token = this.#tokens[this.#next]
    const found = token === undefined ? 'it ends' : `there is ${token.text} at character ${token.at + 1}`
    throw new Error(`Expected ${what}, but ${found}.`)
  }
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  for (TOKEN.lastIndex = 0; text.slice(TOKEN.lastIndex).trim() !== ''; ) {
    const from = TOKEN.lastIndex
    const [, number, name, sign] = TOKEN.exec(text) ?? []
    const found = number ?? name ?? sign
    if (found === undefined) throw new Error(`Nothing can be made of ${JSON.stringify(text.slice(from).trim())}.`)
    const kind = number !== undefined ? 'number' : name !== undefined ? 'name' : 'sign'
    tokens.push({ kind, text: found, at: TOKEN.lastIndex - found.length })
  }
  return tokens
}

function divided(value: number, by: number): number {
  if (by === 0) throw new Error('It divides by zero.')
  return value / by
}

function unknown(name: string): never {
  const known = [...CONSTANTS.keys(), ...FUNCTIONS.keys(), ...OF_MANY.keys()].join(', ')
  throw new Error(`There is no ${name}; there are ${known}.`)
}
