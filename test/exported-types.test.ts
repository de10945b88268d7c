import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { ROOT } from './root'

const PACKAGES = ['core', 'storage-kysely', 'plugins', 'server', 'cluster', 'durably', 'react', 'dashboard'] as const
type Package = (typeof PACKAGES)[number]

/** Who has installed the umbrella can import from it alone. */
const UMBRELLA: Package = 'durably'

interface Entry {
  readonly package: Package
  readonly name: string
  readonly declarations: string
}

const ENTRIES: readonly Entry[] = PACKAGES.flatMap((folder) => {
  const path = join(ROOT, 'packages', folder)
  const { name, exports } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as {
    name: string
    exports: Record<string, string | { readonly import: { readonly types: string } }>
  }
  return Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'string'
      ? []
      : [{ package: folder, name: join(name, entry), declarations: join(path, target.import.types) }],
  )
})

function programOf(entries: readonly Entry[]): ts.Program {
  for (const { name, declarations } of entries) {
    if (!existsSync(declarations)) throw new Error(`${name} is not built: run \`npm run build\``)
  }
  return ts.createProgram(
    entries.map(({ declarations }) => declarations),
    {
      noEmit: true,
      skipLibCheck: true,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules', '@types')],
    },
  )
}

class Reach {
  readonly #checker: ts.TypeChecker
  readonly #program: ts.Program

  constructor(program: ts.Program) {
    this.#program = program
    this.#checker = program.getTypeChecker()
  }

  exportsOf({ name, declarations }: Entry): readonly ts.Symbol[] {
    const source = this.#program.getSourceFile(declarations)
    const module = source === undefined ? undefined : this.#checker.getSymbolAtLocation(source)
    if (module === undefined) throw new Error(`The declarations of ${name} are no module.`)
    return this.#checker.getExportsOfModule(module).map((symbol) => this.#original(symbol))
  }

  /** Everything of ours that the declarations of these names mention, and what that mentions, and the way there. */
  from(symbols: readonly ts.Symbol[]): ReadonlyMap<ts.Symbol, string> {
    const found = new Map<ts.Symbol, string>()
    const visit = (symbol: ts.Symbol, path: string) => {
      if (found.has(symbol)) return
      found.set(symbol, path)
      for (const declaration of symbol.declarations ?? []) {
        for (const mentioned of this.#mentionedIn(declaration)) visit(mentioned, `${path} > ${mentioned.name}`)
      }
    }
    for (const symbol of symbols) visit(symbol, symbol.name)
    return found
  }

  #mentionedIn(declaration: ts.Node): readonly ts.Symbol[] {
    const mentioned: ts.Symbol[] = []
    const look = (node: ts.Node): void => {
      if (isPrivate(node)) return
      const name = nameOf(node)
      const symbol = name === undefined ? undefined : this.#checker.getSymbolAtLocation(name)
      if (symbol !== undefined && isOurs(this.#original(symbol))) mentioned.push(this.#original(symbol))
      node.forEachChild(look)
    }
    declaration.forEachChild(look)
    return mentioned
  }

  #original(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol
  }
}

function nameOf(node: ts.Node): ts.Node | undefined {
  if (ts.isTypeReferenceNode(node)) return node.typeName
  if (ts.isExpressionWithTypeArguments(node)) return node.expression
  if (ts.isTypeQueryNode(node)) return node.exprName
  return undefined
}

function isPrivate(node: ts.Node): boolean {
  if (!ts.canHaveModifiers(node)) return false
  return ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword) ?? false
}

function packageOf(symbol: ts.Symbol): Package | undefined {
  const file = symbol.declarations?.[0]?.getSourceFile().fileName ?? ''
  return PACKAGES.find((folder) => file.startsWith(join(ROOT, 'packages', folder, 'dist')))
}

function isOurs(symbol: ts.Symbol): boolean {
  const kinds = ts.SymbolFlags.Type | ts.SymbolFlags.Variable
  return (
    (symbol.flags & kinds) !== 0 && !(symbol.flags & ts.SymbolFlags.TypeParameter) && packageOf(symbol) !== undefined
  )
}

describe('types that an entry shows can be imported', () => {
  const reach = new Reach(programOf(ENTRIES))
  const exportedBy = (folder: Package) =>
    new Set(ENTRIES.filter((entry) => entry.package === folder).flatMap((entry) => reach.exportsOf(entry)))
  const exported = new Map(PACKAGES.map((folder) => [folder, exportedBy(folder)]))

  it.each(ENTRIES)('$name', (entry) => {
    const hidden = [...reach.from(reach.exportsOf(entry))].filter(([symbol]) => {
      // It stands for the type that is inferred from it.
      if (symbol.name.endsWith('Schema') && (symbol.flags & ts.SymbolFlags.Variable) !== 0) return false
      const owner = packageOf(symbol)
      const isInDependency = entry.package !== UMBRELLA && exported.get(owner ?? UMBRELLA)?.has(symbol)
      return exported.get(entry.package)?.has(symbol) !== true && !isInDependency
    })
    expect(hidden.map(([symbol, path]) => `${symbol.name}, by ${path}`)).toEqual([])
  })
})
