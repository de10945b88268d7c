import { builtin } from '../base'
import type { RunRecord } from '../port'

/** What is asked of an execution from the code that it runs. */
export interface OpenExecution {
  /** Which instance it belongs to. */
  readonly engine: object
  readonly run: Pick<RunRecord, 'id' | 'jobName'>
  readonly calls: { readonly isOver: boolean }
}

/** Code of a job that is going on: the body of a step, or the job function around it. */
export interface OpenBody {
  readonly scope: OpenExecution
  readonly stepName: string | null
}

/**
 * Which body of a step the current code runs in. Where the platform follows asynchronous calls (Node, Bun, Deno) the
 * answer is exact; in a browser it is known for the synchronous start of a body only.
 */
export interface BodyScope {
  run<R>(body: OpenBody, fn: () => R): R
  current(): OpenBody | undefined
  /** Work that does not belong to the body that happened to cause it. */
  outside<R>(fn: () => R): R
}

interface AsyncStore<T> {
  run<R>(value: T | undefined, fn: () => R): R
  getStore(): T | undefined
}

type AsyncHooks = { readonly AsyncLocalStorage: new <T>() => AsyncStore<T> }

/** Node 20 asks each store in use at every promise: one has to do for all instances, and is made for the first body. */
let shared: AsyncStore<object> | undefined

export function createBodyScope(): BodyScope {
  const hooks = builtin<AsyncHooks>('node:async_hooks')
  if (hooks === undefined) return createSynchronousScope()
  return {
    run(body, fn) {
      shared ??= new hooks.AsyncLocalStorage<object>()
      return shared.run(body, fn)
    },
    current: () => shared?.getStore() as OpenBody | undefined,
    outside: (fn) => (shared === undefined ? fn() : shared.run(undefined, fn)),
  }
}

function createSynchronousScope(): BodyScope {
  let current: OpenBody | undefined
  function within<R>(body: OpenBody | undefined, fn: () => R): R {
    const outer = current
    current = body
    try {
      return fn()
    } finally {
      current = outer
    }
  }
  return { run: within, current: () => current, outside: (fn) => within(undefined, fn) }
}
