interface Platform {
  readonly process?: { getBuiltinModule?(name: string): unknown }
}

/** A module of Node (Bun and Deno have them too), where there is one: core imports nothing and runs in tabs. */
export function builtin<T>(name: string): T | undefined {
  return (globalThis as Platform).process?.getBuiltinModule?.(name) as T | undefined
}
