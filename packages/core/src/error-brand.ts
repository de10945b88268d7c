/** The same symbol in every copy of this package: a program may import one and require another. */
const BRAND = Symbol.for('@coji/durably-core/error')

/** What an error says of itself to other copies of this package. */
export interface Brand {
  readonly kind: string
  /** Trying again would come to the same. */
  readonly isPermanent: boolean
}

/** A class of errors that has its brand from itself, or from the one that it extends. */
interface BrandedClass {
  readonly prototype: object
  readonly brand: { readonly kind: string; readonly isPermanent?: boolean }
}

/** Never throws, whatever was thrown. */
export function brandOf(thrown: unknown): Brand | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  try {
    return (thrown as { readonly [BRAND]?: Brand })[BRAND]
  } catch {
    return undefined
  }
}

export function setBrand(error: object, brand: Brand): void {
  Object.defineProperty(error, BRAND, { value: brand })
}

/** A name or a code may be those of a subclass, and bundlers rename classes: a class tells by its `brand` what it is. */
export function brandErrors(base: BrandedClass): void {
  Object.defineProperty(base.prototype, BRAND, {
    get(this: { readonly constructor: BrandedClass }): Brand {
      const { kind, isPermanent = false } = this.constructor.brand
      return { kind, isPermanent }
    },
  })
  /** An error of the same class of another copy of this package counts as one of this one. */
  function isInstance(this: BrandedClass, thrown: unknown): boolean {
    if (Function.prototype[Symbol.hasInstance].call(this, thrown)) return true
    const kind = brandOf(thrown)?.kind
    if (kind === undefined || !Object.hasOwn(this, 'brand')) return false
    return this === base || kind === this.brand.kind
  }
  Object.defineProperty(base, Symbol.hasInstance, { value: isInstance })
}
