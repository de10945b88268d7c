interface HostProcess {
  readonly env: Readonly<Record<string, string | undefined>>
  getBuiltinModule(name: 'node:fs'): { appendFileSync(path: string, text: string): void }
}

/** The Node process of the tests, typed here because core, whose tests import this, is compiled without Node's types. */
export const { process: hostProcess } = globalThis as unknown as { process: HostProcess }
