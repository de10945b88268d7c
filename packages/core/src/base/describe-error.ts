import type { ErrorDetail } from './durably-error'
import { brandOf, setBrand } from './error-brand'
import { NO_CODE, StepError, ValidationError } from './errors'
import { ownError } from './own-errors'

const MAX_MESSAGE = 8 * 1024
const MAX_STACK = 16 * 1024
const MAX_RUN = 64 * 1024

/** An error as it is recorded. */
export interface Described {
  readonly message: string
  readonly detail: ErrorDetail
}

/** What is stored of anything thrown. Never throws itself, whatever the thing is. */
export function describeError(thrown: unknown, stepName?: string): Described {
  const { name, code } = isA(StepError, thrown) ? originalOf(thrown) : namesOf(thrown)
  const stack = readText(thrown, 'stack')
  return {
    message: cleanText(readText(thrown, 'message') ?? safeString(thrown), MAX_MESSAGE),
    detail: {
      name: cleanText(name, 200),
      ...(code !== undefined && { code: cleanText(code, 200) }),
      ...(stack !== undefined && { stack: cleanText(stack, MAX_STACK) }),
      ...(stepName !== undefined && { stepName }),
      ...(isA(ValidationError, thrown) && { issues: issuesOf(thrown) }),
    },
  }
}

/** What is stored of the failure of a step: all that `errorFrom` needs. */
export function describeFailure(thrown: unknown, stepName: string): Described {
  const { message, detail } = describeError(thrown, stepName)
  const brand = brandOf(thrown)
  if (brand === undefined) return { message, detail }
  const own = isA(StepError, thrown) ? null : { kind: brand.kind, ...fieldsOf(thrown, brand.kind) }
  return {
    message,
    detail: { ...detail, ...(own !== null && { own }), ...(brand.isPermanent && { permanent: true }) },
  }
}

/**
 * The error that a job gets of a step that failed. It is made of nothing but what is stored, also when the step has
 * only just failed: a job that catches it goes the same way on every pass. A subclass comes as the class of durably that
 * it extends, under its own name.
 */
export function errorFrom(stepName: string, message: string, detail: ErrorDetail | null): Error {
  const own = ownError(detail?.own?.kind ?? '')
  const error =
    own === undefined || detail === null
      ? new StepError(stepName, message, detail)
      : Object.assign(
          Object.setPrototypeOf(new Error(message), own.type.prototype) as Error,
          detail.issues === undefined ? {} : { issues: detail.issues },
          detail.own?.fields,
          { name: detail.name, code: detail.code },
        )
  error.stack = detail?.stack ?? `${detail?.name ?? 'Error'}: ${message}`
  const brand = brandOf(error)
  if (detail?.permanent === true && brand?.isPermanent === false) setBrand(error, { ...brand, isPermanent: true })
  return error
}

/** What a run failed with is the error that its step threw, not the one that stands for it. */
function originalOf({ originalName, code }: StepError): { readonly name: string; readonly code: string | undefined } {
  return { name: originalName, code: code === NO_CODE ? undefined : code }
}

function namesOf(thrown: unknown): { readonly name: string; readonly code: string | undefined } {
  return { name: readText(thrown, 'name') ?? 'NonError', code: readText(thrown, 'code') }
}

function issuesOf({ issues }: ValidationError): NonNullable<ErrorDetail['issues']> {
  const short = (text: unknown) => cleanText(String(text), 1000)
  return Array.from(issues ?? [])
    .slice(0, 50)
    .map(({ path, message }) => ({ path: short(path), message: short(message) }))
}

function fieldsOf(thrown: unknown, kind: string): { readonly fields?: Readonly<Record<string, unknown>> } {
  const { fields: names = [] } = ownError(kind) ?? {}
  if (names.length === 0) return {}
  return { fields: Object.fromEntries(names.map((name) => [name, asStored(read(thrown, name))])) }
}

/** What comes back is what went in: a subclass may have put anything there. */
function asStored(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value, MAX_MESSAGE)
  if (typeof value === 'boolean' || Number.isFinite(value)) return value
  return typeof value === 'object' && value !== null ? runAsStored(value) : null
}

interface FailedRun {
  readonly id?: unknown
  readonly jobName?: unknown
  readonly status?: unknown
  readonly error?: unknown
  readonly errorDetail?: ErrorDetail | null
}

/** The whole run when it is small, without what its job was given when it is not. */
function runAsStored(run: FailedRun): unknown {
  const lighter = () => ({ ...run, payload: undefined, errorDetail: withoutStack(run.errorDetail ?? null) })
  const lightest = () => ({ id: run.id, jobName: run.jobName, status: run.status, error: run.error })
  for (const make of [() => run, lighter, lightest]) {
    const text = toJson(make)
    if (text !== undefined && text.length <= MAX_RUN) return JSON.parse(text)
  }
  return null
}

function withoutStack(detail: ErrorDetail | null): ErrorDetail | null {
  if (detail === null) return null
  const { stack: _stack, own: _own, ...rest } = detail
  return rest
}

function toJson(make: () => unknown): string | undefined {
  try {
    return JSON.stringify(make())
  } catch {
    return undefined
  }
}

function readText(thrown: unknown, key: 'name' | 'message' | 'code' | 'stack'): string | undefined {
  const value = read(thrown, key)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}

function read(thrown: unknown, key: string): unknown {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  try {
    return (thrown as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

/** Even `instanceof` throws for a revoked proxy. */
function isA<T>(type: abstract new (...args: never[]) => T, thrown: unknown): thrown is T {
  try {
    return thrown instanceof type
  } catch {
    return false
  }
}

const NO_TEXT = 'An error that cannot be turned into text'

function safeString(thrown: unknown): string {
  try {
    const text = typeof thrown === 'object' && thrown !== null ? JSON.stringify(thrown) : String(thrown)
    return text ?? NO_TEXT
  } catch {
    return NO_TEXT
  }
}

/** Databases refuse NUL and replace lone surrogates; neither may make the recording of an error fail. */
export function cleanText(text: string, maxLength: number): string {
  return text
    .slice(0, maxLength)
    .replaceAll('\0', '')
    .replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD')
}
