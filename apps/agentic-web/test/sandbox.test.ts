import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { paced } from '../../../test/pace'
import { SCALE, scaled } from '../../../test/scale'
import { type Env, readWorkerConfig } from '../src/config'
import { createBashTool } from '../src/sandbox'
import { attemptsOn } from '../src/sandbox/attempts'
import { openTestSandbox, USER_OF_TESTS, whereThereIsASandbox } from '../src/sandbox/nobody-sandbox'
import { CANARY, plantHost, plantProcess, SMALL_LIMITS } from '../src/sandbox/targets'
import { startWorker } from '../src/worker/start'
import { type Answered, Browser, deploy, deployed, ENV, type Deployment, isPiece, piecesIn } from './deployment'
import { type Asked, call, openModelServer, sayAll } from './model-server'

const host = await plantHost()
/** Calls have the time that they have in a deployment. */
const sandbox = await openTestSandbox({ limits: { ...SMALL_LIMITS, seconds: 30 } })
const ATTEMPTS = attemptsOn(host.targets).map((attempt, number) => ({ ...attempt, number }))
const SECRETS = ['SECRET_KEYS', 'DATABASE_URL', 'LINK_SECRET']
const TRIED = ATTEMPTS.filter(({ number }) => number % scaled({ quick: 9, full: 1 }) === 0)

afterAll(() => host.end())

/** A model that does what it is told by who means harm, and then says something. */
function answerWithHarm(asked: Asked): void {
  const { role, content } = asked.body.messages.at(-1)
  const [, number] = /attempt (\d+)/.exec(JSON.stringify(content)) ?? []
  if (role === 'tool') sayAll(asked, 'That was all.')
  else call(asked, 'bash', JSON.stringify({ command: ATTEMPTS[Number(number)]?.command }))
}

/** What a user is told that workers can call. */
async function toolsOf({ startApi }: Deployment): Promise<string[]> {
  const ada = await new Browser((await startApi()).url).be('ada')
  return (await ada.get('/api/tools')).body.tools.map(({ name }: Answered) => name)
}

const AS_NOBODY = USER_OF_TESTS === null ? {} : { SANDBOX_USER: '65534:65534' }

/** Which does not come as far as to its database. */
function startsWith(given: Env) {
  const env = { ...ENV, DATABASE_URL: 'postgres://localhost/app', SANDBOX: 'bwrap', ...given }
  return startWorker(readWorkerConfig(env), () => {})
}

describe('a worker that is to have a sandbox', () => {
  it('does not start without bubblewrap, and says what to do', async () => {
    vi.stubEnv('PATH', '/nowhere')
    onTestFinished(() => void vi.unstubAllEnvs())
    await expect(startsWith(AS_NOBODY)).rejects.toThrow('apt-get install bubblewrap')
  })

  it.runIf(USER_OF_TESTS !== null)('does not start as root, where nobody else is named for it', async () => {
    await expect(startsWith({})).rejects.toThrow('SANDBOX_USER=65534:65534')
  })
})

describe(
  'bash in a chat',
  whereThereIsASandbox(() => {
    let deployment: Deployment & { end(): Promise<void> }
    let model: Awaited<ReturnType<typeof openModelServer>>
    let urls: readonly string[]

    beforeAll(async () => {
      model = await openModelServer(answerWithHarm)
      deployment = await deploy({ MODEL_HOSTS: model.host })
      urls = [(await deployment.startApi()).url]
      if (sandbox !== null) await deployment.startWorker({}, { tools: [createBashTool(sandbox)] })
    })
    afterAll(async () => {
      await deployment.end()
      model.close()
    })

    /** Has the command called, and waits for what comes of it. */
    async function runs(browser: Browser, session: string, command: string) {
      const run = await begins(browser, session, bash(command))
      return piecesIn(await browser.ended(run)).find(isPiece('tool-result'))
    }

    /** What the built-in model makes a call of. */
    const bash = (command: string) => `/bash ${JSON.stringify({ command })}`

    /** Says it, and agrees to the call that comes of it. */
    async function begins(browser: Browser, session: string, text: string): Promise<string> {
      const run = await browser.say(session, text)
      const { name } = await browser.until(run, isPiece('asked'))
      await browser.post(`/api/approvals/${run}/${encodeURIComponent(name)}`, { decision: 'approve' })
      return run
    }

    it('is offered by workers that are told to, and by no others', async () => {
      const own = await deployed()
      await own.startWorker()
      expect(await toolsOf(own)).not.toContain('bash')
      await own.startWorker({ SANDBOX: 'bwrap', ...AS_NOBODY })
      expect(await toolsOf(own)).toContain('bash')
    })

    it('keeps the files of the session from one call to the next, and shows them to nobody else', async () => {
      const ada = await new Browser(...urls).be('ada')
      const session = await ada.newSession()
      const written = await runs(ada, session, 'mkdir notes; echo secret-of-ada > notes/a.txt')
      expect(written).toMatchObject({ isError: false, result: { exitCode: 0, written: ['notes/a.txt'] } })
      const read = await runs(ada, session, 'cat notes/a.txt; rm notes/a.txt; echo b > b.txt')
      expect(read).toMatchObject({
        result: { output: 'secret-of-ada\n', written: ['b.txt'], removed: ['notes/a.txt'] },
      })
      const { body } = await ada.get(`/api/sessions/${session}/files`)
      expect(body.files).toMatchObject([{ path: 'b.txt', size: 2 }])
      const grace = await new Browser(...urls).be('grace')
      const seen = await runs(grace, await grace.newSession(), "ls -A; find / -name 'b.txt' 2>/dev/null; echo looked")
      expect(seen).toMatchObject({ result: { output: 'looked\n' } })
    })

    it('finds none of the secrets of its worker', async () => {
      const secrets = SECRETS.map((name) => [name, deployment.env[name] ?? ''] as const)
      // In the environment that its own processes are given, and in that of one which was started with them.
      for (const [name, secret] of secrets) vi.stubEnv(name, secret)
      onTestFinished(() => void vi.unstubAllEnvs())
      onTestFinished(plantProcess(Object.fromEntries(secrets)))
      const ada = await new Browser(...urls).be('ada')
      const found = await runs(
        ada,
        await ada.newSession(),
        'env; cat /proc/*/environ; cat /proc/*/cmdline; echo looked',
      )
      expect(found).toMatchObject({ isError: false })
      const told = JSON.stringify(found)
      expect(told).toContain('looked')
      for (const [name, secret] of secrets) {
        expect(told).not.toContain(name)
        expect(told).not.toContain(secret)
      }
    })

    it('ends with its run, and with all that it started, within a second of the stop, and leaves nothing behind', async () => {
      const ada = await new Browser(...urls).be('ada')
      const times: number[] = []
      for (let round = 0; round < scaled({ quick: 1, full: 9 }); round++) {
        const session = await ada.newSession()
        const run = await begins(ada, session, bash(STUBBORN))
        await expect.poll(() => running('sleep 16180')).toHaveLength(3)
        const tree = running('sleep 16180')
        const gone = ended(tree).then(() => performance.now())
        const stopped = performance.now()
        await ada.post(`/api/runs/${run}/cancel`)
        expect((await ada.ended(run)).at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } })
        // Who is told that the run is over finds nothing of it.
        expect(running('sleep 16180')).toEqual([])
        times.push((await gone) - stopped)
        expect((await ada.get(`/api/sessions/${session}/files`)).body.files).toEqual([])
      }
      // Other tests have the cores, too: one of them may wait for its turn.
      const middle = times.sort((one, other) => one - other)[Math.floor(times.length / 2)]
      if (SCALE === 'full') expect(middle).toBeLessThan(paced(1000))
    })

    describe.concurrent('asked for by a model that means harm', () => {
      let grace: Browser
      beforeAll(async () => {
        grace = await new Browser(...urls).be('grace')
        const settings = { provider: 'openai-compatible', base_url: model.baseUrl, model: 'harm', reasoning: 'none' }
        expect((await grace.send('PUT', '/api/settings', settings)).status).toBe(200)
      })

      it.for(TRIED)('reaches no further than the sandbox: $name', async ({ number, contained }, { expect }) => {
        const session = await grace.newSession()
        const run = await begins(grace, session, `attempt ${number}`)
        const frames = await grace.ended(run)
        expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
        const result = piecesIn(frames).find(isPiece('tool-result'))
        expect(result).toMatchObject({ isError: false })
        expect(JSON.stringify(result?.result)).toMatch(contained)
        expect(JSON.stringify([frames, await kept(grace, session)])).not.toContain(CANARY)
      })
    })

    it('has told that model nothing, and reached no server of the host', () => {
      expect(model.asked.length).toBeGreaterThanOrEqual(2 * TRIED.length)
      expect(JSON.stringify(model.asked.map(({ body }) => body))).not.toContain(CANARY)
      expect(deployment.log.join('')).not.toContain(CANARY)
      expect(host.connections()).toBe(0)
    })
  }),
)

/** What is there of a session for who asks. */
async function kept(browser: Browser, session: string): Promise<unknown> {
  const { files } = (await browser.get(`/api/sessions/${session}/files`)).body
  const contents = []
  for (const { path } of files)
    contents.push(await (await browser.fetch(`/api/sessions/${session}/files/${path}`)).text())
  return [(await browser.get(`/api/sessions/${session}`)).body, files, contents]
}

/** Does not hear what others would end by, and has left its session, and its output. */
const STUBBORN = [
  'trap "" TERM HUP INT',
  'echo x > half.txt',
  '(setsid sleep 16180 &)',
  '(setsid sleep 16180 < /dev/null > /dev/null 2>&1 &)',
  'sleep 16180',
].join('; ')

/** Waits on each process by a descriptor of it, which the kernel makes readable at the moment when it ends. */
const WAIT = `
  for my $id (@ARGV) {
    my $fd = syscall(434, $id + 0, 0);
    my $ended = "";
    if ($fd >= 0) { vec($ended, $fd, 1) = 1; select($ended, undef, undef, undef) }
  }`

async function ended(ids: readonly number[]): Promise<void> {
  const [code] = await once(spawn('perl', ['-e', WAIT, ...ids.map(String)], { stdio: 'inherit' }), 'exit')
  expect(code).toBe(0)
}

function running(command: string): number[] {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.filter((id) => commandOf(id) === command).map(Number)
}

function commandOf(id: string): string {
  try {
    return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}
