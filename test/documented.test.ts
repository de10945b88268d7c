import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'
import { ROOT } from './root'

interface Entry {
  readonly name: string
  readonly file: string
}

function entries(): readonly Entry[] {
  return readdirSync(join(ROOT, 'packages')).flatMap((folder) => {
    const path = join(ROOT, 'packages', folder)
    const { name, exports } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    return Object.entries<Record<string, string>>(exports).flatMap(([entry, conditions]) => {
      const source = conditions['@coji/durably-source']
      return source === undefined ? [] : [{ name: join(name, entry), file: join(path, source) }]
    })
  })
}

function undocumented({ name, file }: Entry, program: ts.Program): readonly string[] {
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(file)
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source)
  if (module === undefined) throw new Error(`${file} is not a module.`)
  return checker
    .getExportsOfModule(module)
    .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
    .filter((symbol) => symbol.getDocumentationComment(checker).length === 0)
    .map((symbol) => `${name}: ${symbol.name}`)
}

it('every public name has a doc comment', () => {
  const all = entries()
  const program = ts.createProgram(
    all.map((entry) => entry.file),
    {
      noEmit: true,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      module: ts.ModuleKind.ESNext,
      customConditions: ['@coji/durably-source'],
    },
  )
  expect([...new Set(all.flatMap((entry) => undocumented(entry, program)))]).toEqual([])
})
