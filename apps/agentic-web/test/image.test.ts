import { execFile, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SCALE } from '../../../test/scale'

const APP = fileURLToPath(new URL('..', import.meta.url))
const ROOT = join(APP, '../..')

describe('the Dockerfile', () => {
  it('takes along nothing that a checkout has built or installed', async () => {
    const gitignore = await readFile(join(ROOT, '.gitignore'), 'utf8')
    const folders = [...gitignore.matchAll(/^(.+)\/$/gm)].map(([, name]) => name)
    expect(folders).toContain('node_modules')
    expect(await foldersLeftOut()).toEqual(expect.arrayContaining(folders))
  })

  // Minutes, and a network: what is installed is fetched anew.
  it.runIf(SCALE === 'full')('builds programs that start, in an empty folder', async () => {
    const root = await mkdtemp(join(tmpdir(), 'agentic-web-image-'))
    onTestFinished(() => rm(root, { recursive: true, force: true }))
    const lines = (await readFile(join(APP, 'Dockerfile'), 'utf8')).split('\n')
    const build = lines.slice(
      0,
      lines.findIndex((line) => line.endsWith(' AS app')),
    )
    for (const line of build) {
      const [, instruction, rest = ''] = /^(COPY|RUN) (.*)$/.exec(line) ?? []
      if (instruction === 'COPY') await copy(rest.split(' '), root)
      if (instruction === 'RUN') await promisify(execFile)('sh', ['-c', rest], { cwd: root, maxBuffer: 1e8 })
    }
    const dist = join(root, 'image/dist')
    await cp(join(root, 'apps/agentic-web/dist'), dist, { recursive: true })
    const missed = { api: 'DATABASE_URL', worker: 'DATABASE_URL', web: 'API_URLS' }
    for (const [program, variable] of Object.entries(missed)) {
      const { stderr } = await promisify(execFile)(process.execPath, [join(dist, `${program}.js`)], { env: {} }).catch(
        (error: { stderr: string }) => error,
      )
      expect(stderr).toContain(`- ${variable} `)
    }
    expect(await readFile(join(dist, 'web/index.html'), 'utf8')).toContain('<script')
  })

  it.runIf(SCALE === 'full' && canInstallInACopy())('gives workers a bubblewrap', async () => {
    const lines = (await readFile(join(APP, 'Dockerfile'), 'utf8')).split('\n')
    const stage = lines.slice(lines.findIndex((line) => line.endsWith(' AS worker')))
    const installs = stage.filter((line) => line.startsWith('RUN ')).map((line) => line.slice('RUN '.length))
    expect(installs).toHaveLength(1)
    const without = 'if command -v bwrap; then dpkg --remove --force-depends bubblewrap; fi; ! command -v bwrap'
    const script = [without, ...installs, 'bwrap --version'].join('\n')
    const { stdout } = await promisify(execFile)(...inACopyOfTheSystem(script), { maxBuffer: 1e8 })
    expect(stdout).toMatch(/^bubblewrap \d/m)
  })
})

/** Programs that are installed go into a layer above the system of this machine, which is thrown away with the name space. */
const IN_A_COPY_OF_THE_SYSTEM = [
  'layers=$(mktemp -d)',
  'mount -t tmpfs tmpfs "$layers"',
  'mkdir "$layers/changed" "$layers/own" "$layers/copy"',
  'mount -t overlay overlay -o "lowerdir=/,upperdir=$layers/changed,workdir=$layers/own" "$layers/copy"',
  'mount --rbind /dev "$layers/copy/dev"',
  'mount --rbind /proc "$layers/copy/proc"',
  'exec chroot "$layers/copy" sh -euc "$1"',
].join(' && ')

function inACopyOfTheSystem(script: string): readonly [string, readonly string[]] {
  return ['unshare', ['--mount', 'sh', '-c', IN_A_COPY_OF_THE_SYSTEM, 'sh', script]]
}

function canInstallInACopy(): boolean {
  return spawnSync(...inACopyOfTheSystem('command -v apt-get')).status === 0
}

/** Of what Docker sends, wherever in it they are. */
async function foldersLeftOut(): Promise<string[]> {
  const patterns = await readFile(join(APP, 'Dockerfile.dockerignore'), 'utf8')
  return [...patterns.matchAll(/^\*\*\/(.+)$/gm)].map(([, name = '']) => name)
}

async function copy(given: readonly string[], to: string): Promise<void> {
  const leftOut = await foldersLeftOut()
  const isWanted = (source: string) =>
    !relative(ROOT, source)
      .split('/')
      .some((part) => leftOut.includes(part))
  const target = given.at(-1) ?? ''
  for (const path of given.slice(0, -1)) {
    const from = join(ROOT, path)
    const isInto = target.endsWith('/')
    const destination = isInto ? join(to, target, path.split('/').at(-1) ?? '') : join(to, target)
    await mkdir(dirname(destination), { recursive: true })
    await cp(from, destination, { recursive: true, filter: isWanted })
  }
}
