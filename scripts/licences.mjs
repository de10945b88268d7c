import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const RULE = '-'.repeat(80)
// The packages of SQLite and wouter carry the name of their licence and not its text.
const TEXTS = {
  'Apache-2.0': join(import.meta.dirname, 'apache-2.0.txt'),
  Unlicense: join(import.meta.dirname, 'unlicense.txt'),
}

/** The licences of everything that went into a bundle, for the file that is published beside it. */
export function licencesOf(inputs) {
  const roots = new Map(inputs.map(manifestOf).map((manifest) => [manifest.name, manifest]))
  const named = [...roots.values()].sort((one, other) => one.name.localeCompare(other.name))
  return `${named.map(describe).join(`\n\n${RULE}\n\n`)}\n`
}

function manifestOf(input) {
  for (let folder = dirname(input); folder !== dirname(folder); folder = dirname(folder)) {
    const path = join(folder, 'package.json')
    const manifest = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}
    if (manifest.name !== undefined) return { ...manifest, folder }
  }
  throw new Error(`No package owns ${input}: what is its licence?`)
}

function describe({ name, version, license, folder }) {
  const heading = name.startsWith('@coji/') ? name : `${name} ${version}`
  return `${heading} (${license})\n\n${textOf({ name, license, folder })}`
}

function textOf({ name, license, folder }) {
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
  if (file !== undefined) return readFileSync(join(folder, file), 'utf8').trim()
  if (name.startsWith('@coji/')) return readFileSync(join(folder, '..', '..', 'LICENSE'), 'utf8').trim()
  if (license in TEXTS) return readFileSync(TEXTS[license], 'utf8').trim()
  throw new Error(`${name} (${license}) says nothing of its licence.`)
}
