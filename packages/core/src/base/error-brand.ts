/** The same symbol in every copy of this package: a program may import one and require another. */
const BRAND = Symbol.for('@coji/durably-core/error')

/**
 * Where a class has its own. No name that a subclass would have for something else, and no symbol, for whose sake bundlers
 * would keep classes that nobody uses.
 */
const OF_CLASS = 'durably:error'

/** What an error says of itself to other copies of this package. */
export interface Brand {
  readonly kind: string
  /** Trying again would come to the same. */
  readonly isPermanent: boolean
}

/** What a class of errors says of its instances, and of those of its subclasses. */
interface ClassBrand {
  readonly kind: string
  readonly isPermanent?: boolean
}

interface BrandedClass {
  readonly prototype: object
  readonly [OF_CLASS]: ClassBrand
}

/** Never throws, whatever was thrown. */
export function brandOf(thrown: unknown): Brand | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  try {
    return asBrand((thrown as { readonly [BRAND]?: unknown })[BRAND])
  } catch {
    return undefined
  }
}

/** Whatever else somebody has put there says nothing. */
function asBrand(brand: unknown): Brand | undefined {
  if (typeof brand !== 'object' || brand === null) return undefined
  const { kind, isPermanent = false } = brand as { readonly kind?: unknown; readonly isPermanent?: unknown }
  return typeof kind === 'string' && typeof isPermanent === 'boolean' ? { kind, isPermanent } : undefined
}

export function setBrand(error: object, brand: Brand): void {
  Object.defineProperty(error, BRAND, { value: brand })
}

/** A name or a code may be those of a subclass, and bundlers rename classes: a class tells by its brand what it is. */
export function brandErrors(base: BrandedClass): void {
  Object.defineProperty(base.prototype, BRAND, { get: brandOfClass })
  /** An error of the same class of another copy of this package counts as one of this one. */
  function isInstance(this: BrandedClass, thrown: unknown): boolean {
    if (Function.prototype[Symbol.hasInstance].call(this, thrown)) return true
    const kind = brandOf(thrown)?.kind
    if (kind === undefined || !Object.hasOwn(this, OF_CLASS)) return false
    return this === base || kind === asBrand(this[OF_CLASS])?.kind
  }
  Object.defineProperty(base, Symbol.hasInstance, { value: isInstance })
}

/** That of the nearest class that has one. */
function brandOfClass(this: object): Brand | undefined {
  let prototype: unknown = Object.getPrototypeOf(this)
  while (typeof prototype === 'object' && prototype !== null) {
    const brand = asBrand((prototype.constructor as Partial<BrandedClass>)[OF_CLASS])
    if (brand !== undefined) return brand
    prototype = Object.getPrototypeOf(prototype)
  }
  return undefined
}
