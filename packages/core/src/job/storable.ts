import type { StandardSchema } from '../base'

/** Stands where a type has something that JSON cannot keep, and says in an error of the compiler what to do. */
export interface NotStorable<TRemedy extends string> {
  readonly 'cannot be stored as JSON': TRemedy
}

/** The type itself, with a `NotStorable` wherever JSON would change or refuse a value. */
export type Storable<T> =
  // Of `any` alone this is true.
  0 extends 1 & T
    ? T
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends bigint
        ? NotStorable<'a bigint: take a string, and make the bigint in the job'>
        : T extends symbol
          ? NotStorable<'a symbol'>
          : T extends (...args: never) => unknown
            ? NotStorable<'a function, or an object with methods'>
            : T extends Date
              ? NotStorable<'a Date: take its ISO text (z.iso.datetime()), and make the Date in the job'>
              : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
                ? NotStorable<'a Map or Set: take a list, and make it in the job'>
                : T extends readonly (infer Item)[]
                  ? readonly Storable<Item>[]
                  : T extends object
                    ? { [Key in keyof T]: Storable<T[Key]> }
                    : T

/** A schema whose parsed value can be stored. */
export type StorableSchema<TInput, TOutput> = StandardSchema<TInput, TOutput> & {
  readonly '~standard': { readonly types?: { readonly output: Storable<TOutput> } | undefined }
}
