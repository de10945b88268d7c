import { builtin } from './platform'

/**
 * Which body of a step the current code runs in. Where the platform follows asynchronous calls (Node, Bun, Deno) the
 * answer is exact; in a browser it is known for the synchronous start of a body only.
 */
export interface BodyScope<T extends object> {
  run<R>(body: T, fn: () => R): R
  current(): T | undefined
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

export function createBodyScope<T extends object>(): BodyScope<T> {
  const hooks = builtin<AsyncHooks>('node:async_hooks')
  if (hooks === undefined) return createSynchronousScope()
  return {
    run(body, fn) {
      shared ??= new hooks.AsyncLocalStorage<object>()
      return shared.run(body, fn)
    },
    current: () => shared?.getStore() as T | undefined,
    outside: (fn) => (shared === undefined ? fn() : shared.run(undefined, fn)),
  }
}

function createSynchronousScope<T extends object>(): BodyScope<T> {
  let current: T | undefined
  function within<R>(body: T | undefined, fn: () => R): R {
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
