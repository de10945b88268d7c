import { createRequire } from 'node:module'
import type { PrismaPg } from '@prisma/adapter-pg'

interface Statements {
  $queryRawUnsafe(text: string, ...params: unknown[]): Promise<unknown>
}

interface PrismaClient extends Statements {
  $transaction<T>(
    body: (tx: Statements) => Promise<T>,
    limits: { readonly maxWait: number; readonly timeout: number },
  ): Promise<T>
  $disconnect(): Promise<void>
}

const require = createRequire(import.meta.url)

/** What Prisma generates for a schema without models: the generator itself wants to fetch a program from its makers. */
export function prismaClient(adapter: PrismaPg): PrismaClient {
  const { getPrismaClient } = require('@prisma/client/runtime/client.js')
  const compiler = '@prisma/client/runtime/query_compiler_fast_bg.postgresql'
  const Client = getPrismaClient({
    previewFeatures: [],
    clientVersion: require('@prisma/client/package.json').version,
    activeProvider: 'postgresql',
    inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      getRuntime: async () => require(`${compiler}.js`),
      getQueryCompilerWasmModule: async () =>
        new WebAssembly.Module(Buffer.from(require(`${compiler}.wasm-base64.js`).wasm, 'base64')),
      importName: './query_compiler_fast_bg.js',
    },
  })
  return new Client({ adapter })
}
