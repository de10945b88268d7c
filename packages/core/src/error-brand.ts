/** The same symbol in every copy of this package: a program may import one and require another. */
export const BRAND = Symbol.for('@coji/durably-core/error')

/** What an error says of itself to other copies of this package. */
export interface Brand {
  readonly kind: string
  /** Trying again would come to the same. */
  readonly isPermanent: boolean
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

export function setBrand(target: object, brand: Brand): void {
  Object.defineProperty(target, BRAND, { value: brand })
}
