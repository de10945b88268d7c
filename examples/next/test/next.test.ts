import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { expect, it, onTestFinished, vi } from 'vitest'
import { seeRunThrough } from '../../../test/mounted-handler'
import { SCALE } from '../../../test/scale'

const EXAMPLE = fileURLToPath(new URL('..', import.meta.url))
const PACKED = fileURLToPath(new URL('../../../.tmp/packed', import.meta.url))

const ASKING = {
  ...{ jobName: 'ask', payload: { question: 'Tea?' }, signalName: 'answer', value: 'Yes, please.' },
  output: 'Tea? Yes, please.',
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'durably-next-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

it('has route handlers that are mounted as they are', async () => {
  vi.stubEnv('DATABASE_URL', `file:${join(newFolder(), 'app.db')}`)
  vi.stubEnv('NEXT_RUNTIME', 'nodejs')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { register } = await import('../instrumentation.js')
  await register()
  const { durably } = await import('../lib/durably.js')
  onTestFinished(() => durably.close())
  const route: Record<string, (request: Request) => Promise<Response>> = await import(
    '../app/api/durably/[...path]/route.js'
  )
  // As Next does: by the name of the method.
  const server = createServer(
    getRequestListener(async (request) => route[request.method]?.(request) ?? new Response(null)),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  await seeRunThrough(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/durably`, ASKING)
})

/** A copy of it with the packages as they would be published. */
function install(): string {
  if (!existsSync(PACKED)) throw new Error('Nothing is packed: run `npm run packages` after `npm run build`.')
  const folder = join(newFolder(), 'app')
  cpSync(EXAMPLE, folder, { recursive: true, filter: (path) => !/node_modules|\.next|vitest|\.db/.test(path) })
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const tarballs = readdirSync(PACKED).filter((name) => !name.includes('durably-cli-'))
  const own = tarballs.map((name) => [name.replace(/^coji-(.*?)-\d+\..*$/, '@coji/$1'), `file:${join(PACKED, name)}`])
  const dependencies = { ...manifest.dependencies, ...Object.fromEntries(own) }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, dependencies }))
  npm(folder, 'install', '--no-audit', '--no-fund', '--legacy-peer-deps', '--prefer-offline')
  return folder
}

function npm(cwd: string, ...args: readonly string[]): void {
  execFileSync('npm', args, {
    cwd,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Some hundred megabytes, fetched by npm: for the long lane alone. */
const BUILDERS = SCALE === 'full' ? ['Next'] : []

it.each(BUILDERS)('is built and served by %s', async () => {
  const folder = install()
  npm(folder, 'run', 'build')
  const next = join(folder, 'node_modules', 'next', 'dist', 'bin', 'next')
  const child = spawn(process.execPath, [next, 'start', '--port', '0', '--hostname', '127.0.0.1'], {
    ...{ cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout?.setEncoding('utf8').on('data', (more: string) => {
    said += more
  })
  await expect.poll(() => said).toMatch(/http:\/\/127\.0\.0\.1:\d+/)
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? []
  await seeRunThrough(`${url}/api/durably`, ASKING)
  expect(await (await fetch(`${url}/`)).text()).toContain('durably in Next')
  const page = await (await fetch(`${url}/admin`)).text()
  const [, script] = /<script[^>]* src="([^"]+)"/.exec(page) ?? []
  expect((await fetch(new URL(script ?? '', `${url}/admin/`))).status).toBe(200)
})
