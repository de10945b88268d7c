import { ValidationError, type ValidationIssue } from './errors'

/** The part of the Standard Schema interface that durably uses: Zod, Valibot, ArkType and others implement it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** What a schema says of a value. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** One thing that a schema refuses. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/**
 * The parsed value, or a `ValidationError` that names every path. It comes in a box: a value with a property `then`
 * would be taken for a promise.
 */
export async function parseWith<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
  what: string,
): Promise<{ readonly value: Output }> {
  return parsed(await schema['~standard'].validate(value), what)
}

/** As `parseWith`, within this call unless the schema takes its time: most do not. */
export function parseNow<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
  what: string,
): { readonly value: Output } | Promise<{ readonly value: Output }> {
  const result = schema['~standard'].validate(value)
  return result instanceof Promise ? result.then((late) => parsed(late, what)) : parsed(result, what)
}

function parsed<Output>(result: SchemaResult<Output>, what: string): { readonly value: Output } {
  if (result.issues === undefined) return { value: result.value }
  throw new ValidationError(what, result.issues.map(describeIssue))
}

function describeIssue(issue: SchemaIssue): ValidationIssue {
  const keys = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))
  return { path: keys.join('.'), message: issue.message }
}
