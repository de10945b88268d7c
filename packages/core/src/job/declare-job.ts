import {
  InvalidOptionError,
  type OptionNames,
  refuseBadText,
  refuseUnknownOptions,
  requireDuration,
  type StandardSchema,
} from '../base'
import type { StorableSchema } from './storable'

/** What `declareJob` takes: what triggers and readers of a job have to know. */
export interface JobDeclarationOptions<TName extends string, TInput, TPayload> {
  /** Unique on an instance, and the name under which runs are stored. */
  readonly name: TName
  /**
   * Any Standard Schema. `trigger` takes its input type; the job gets, and the database stores, what it parsed, which
   * therefore has to be JSON.
   */
  readonly input: StorableSchema<TInput, TPayload>
  /** Milliseconds from the first start to the end of the run, waits included. */
  readonly timeout?: number | undefined
  /** Recorded with each run, to tell runs of different code apart. */
  readonly version?: string | undefined
}

/** What a process has to know of a job to trigger it and to read its runs: what `declareJob` makes. */
export interface JobDeclaration<TName extends string = string, TInput = unknown, TOutput = unknown> {
  readonly name: TName
  readonly input: StandardSchema
  readonly output: StandardSchema | null
  readonly timeoutMs: number | null
  readonly version: string | null
  /** Types only. */
  readonly types?: { readonly input: TInput; readonly output: TOutput; takes?(input: TInput): void }
}

/**
 * A job that other processes execute, without its function. An instance that registers it triggers, awaits and reads its
 * runs with their types, and executes none. Give it the `timeout` and `version` of the job: they are stored with each run.
 *
 * ```ts
 * const sendMail = declareJob({ name: 'send-mail', input: z.object({ to: z.string() }) })
 * ```
 */
export function declareJob<TName extends string, TInput, TPayload, TOutput = unknown>(
  options: JobDeclarationOptions<TName, TInput, TPayload> & {
    /** Says what `output` of a run is. It was checked where the job was executed, and is not checked again. */
    readonly output?: StorableSchema<unknown, TOutput> | undefined
  },
): JobDeclaration<TName, TInput, TOutput> {
  refuseUnknownOptions(nameIn('declareJob()', options), options, DECLARATION_OPTIONS)
  return toDeclaration(options) as JobDeclaration<TName, TInput, TOutput>
}

/** A job of which nothing is known but its name. Its payloads are taken as they are. */
export function namedJob(name: string): JobDeclaration {
  requireName(name)
  return { name, input: ANYTHING, output: null, timeoutMs: null, version: null }
}

export function isDeclaration(job: unknown): job is JobDeclaration {
  const { name, input } = Object(job) as Partial<JobDeclaration>
  return typeof name === 'string' && isSchema(input)
}

export type AnyOutput<TOptions> = TOptions & { readonly output?: StandardSchema | undefined }

export const DECLARATION_OPTIONS: OptionNames<AnyOutput<JobDeclarationOptions<string, unknown, unknown>>> = {
  name: true,
  input: true,
  output: true,
  timeout: true,
  version: true,
}

const ANYTHING: StandardSchema = {
  '~standard': { version: 1, vendor: 'durably', validate: (value) => ({ value }) },
}

export function nameIn(call: string, options: { readonly name?: unknown } | null | undefined): string {
  return typeof options?.name === 'string' ? `${call} of "${options.name}"` : call
}

function requireName(name: unknown): void {
  if (typeof name !== 'string' || name === '') throw new InvalidOptionError('A job needs a name that is not empty.')
  refuseBadText('The name of a job', name)
}

/** Checked. */
export function toDeclaration({
  name,
  input,
  output,
  timeout,
  version,
}: AnyOutput<JobDeclarationOptions<string, unknown, unknown>>): JobDeclaration {
  requireName(name)
  refuseBadText(`The version of job "${name}"`, version)
  if (!isSchema(input)) {
    throw new InvalidOptionError(`Job "${name}" needs an input schema (Zod, Valibot, ArkType: any Standard Schema).`)
  }
  if (output !== undefined && !isSchema(output))
    throw new InvalidOptionError(`The output of job "${name}" is no schema.`)
  if (timeout !== undefined) requireDuration(`The timeout of job "${name}"`, timeout)
  return {
    name,
    input,
    output: output ?? null,
    timeoutMs: timeout === undefined ? null : Math.ceil(timeout),
    version: version ?? null,
  }
}

function isSchema(schema: StandardSchema | undefined): boolean {
  return typeof schema?.['~standard']?.validate === 'function'
}
