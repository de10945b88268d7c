import { createDurably, declareJob, type Durably, type ScopedDurably } from '@coji/durably-core'
import { createMemoryStorage } from '@coji/durably-core/memory'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { type RunApi, useJob, type UsedJob, useRun } from '../src/index'
import { greet } from './page/jobs'

/** Only its types are of interest: hooks run in components. */
function useEverything() {
  const durably = createDurably({ storage: createMemoryStorage() })
  const declared = declareJob({ name: 'count', input: z.object({ to: z.number() }), output: z.array(z.number()) })
  return {
    byDefinition: useJob(greet),
    byDeclaration: useJob(declared),
    byHandle: useJob(durably.register({ greet }).greet),
    byName: useJob<{ readonly sum: number }>('add'),
    run: useRun<{ readonly sum: number }>('id'),
  }
}

test('an instance, and one that is scoped to a tenant, are what the store needs', () => {
  expectTypeOf<Durably>().toExtend<RunApi>()
  expectTypeOf<ScopedDurably>().toExtend<RunApi>()
})

test('a job tells the hook its types', () => {
  type Hooks = ReturnType<typeof useEverything>
  expectTypeOf<Hooks['byDefinition']>().toEqualTypeOf<UsedJob<{ name: string }, { words: number }>>()
  expectTypeOf<Hooks['byDeclaration']>().toEqualTypeOf<UsedJob<{ to: number }, number[]>>()
  expectTypeOf<Hooks['byHandle']>().toEqualTypeOf<UsedJob<{ name: string }, { words: number }>>()
  expectTypeOf<Parameters<Hooks['byName']['trigger']>[0]>().toBeUnknown()
  expectTypeOf<Hooks['byName']['output']>().toEqualTypeOf<{ readonly sum: number } | null>()
})

test('the status tells what is there', () => {
  type Run = NonNullable<ReturnType<typeof useEverything>['run']['run']>
  expectTypeOf<Extract<Run, { status: 'completed' }>['output']>().toEqualTypeOf<{ readonly sum: number }>()
})
