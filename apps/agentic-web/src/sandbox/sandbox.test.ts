import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bundlePrograms } from '../../../../test/bundle-programs'
import type { SessionFile } from '../files/session-file'
import { createBashTool, createSandboxTools, openSandbox, type Sandbox, type SandboxResult } from './index'
import { filesOf, openTestSandbox, sandboxOfTests, USER_OF_TESTS, whereThereIsASandbox } from './nobody-sandbox'

const file = (path: string, text: string): SessionFile => ({ path, content: Buffer.from(text) })

function run(command: string, files: SessionFile[] = [], sandbox: Sandbox | null = sandboxOfTests) {
  if (sandbox === null) throw new Error('There is no sandbox.')
  return sandbox.run({ command, files })
}

function written({ changes }: SandboxResult): Record<string, string> {
  return Object.fromEntries(changes.written.map(({ path, content }) => [path, Buffer.from(content).toString('utf8')]))
}

describe('opening the sandbox', () => {
  it.runIf(process.platform === 'linux')('refuses to run as root, and says what to do', async () => {
    const asRoot = openSandbox({ user: { uid: 0, gid: 0 } })
    await expect(asRoot).rejects.toThrow('The sandbox does not run as root.')
    await expect(openSandbox({ user: { uid: 65_534, gid: 0 } })).rejects.toThrow('SANDBOX_USER')
  })

  it.runIf(process.platform === 'linux')('says at once that there is no bwrap', async () => {
    const opened = openSandbox({ bwrap: '/nowhere/bwrap', user: { uid: 65_534, gid: 65_534 } })
    await expect(opened).rejects.toThrow('bwrap did not start')
  })
})

describe(
  'a command in the sandbox',
  whereThereIsASandbox(() => {
    it('finds the files of the session, and what it changes is told', async () => {
      const long = `${'long-'.repeat(30)}name.txt`
      const files = [file('notes/a.txt', 'one'), file('same.txt', 'same'), file('gone.txt', 'x'), file(long, 'long')]
      const result = await run(
        `cat notes/a.txt ${long}; echo two > notes/a.txt; rm gone.txt; mkdir d; printf 3 > d/c`,
        files,
      )
      expect(result).toMatchObject({ exitCode: 0, endedBy: null, refused: null, output: { text: 'onelong' } })
      expect(written(result)).toEqual({ 'notes/a.txt': 'two\n', 'd/c': '3' })
      expect(result.changes.removed).toEqual(['gone.txt'])
    })

    it('tells its exit code, and standard output and error in their order', async () => {
      const result = await run('echo 1; echo 2 >&2; echo 3 > /dev/stdout; exit 7')
      expect(result).toMatchObject({ exitCode: 7, output: { text: '1\n2\n3\n' } })
    })

    it('leaves nothing running', async () => {
      const result = await run('(setsid sleep 27182 &) ; sleep 27182 & echo started; (sleep 0.1; echo late >> x) &')
      expect(result).toMatchObject({ exitCode: 0, output: { text: 'started\n' }, changes: { written: [] } })
      expect(running('sleep 27182')).toEqual([])
    })

    it('is gone, with everything that it started, when it is cancelled', async () => {
      const cancel = new AbortController()
      const ran = sandboxOfTests?.run({
        command: 'trap "" TERM HUP INT; (setsid sleep 31415 &); sleep 31415',
        files: [],
        signal: cancel.signal,
      })
      await expect.poll(() => running('sleep 31415').length).toBe(2)
      cancel.abort(new Error('Stop.'))
      await expect(ran).rejects.toThrow('Stop.')
      await expect.poll(() => running('sleep 31415')).toEqual([])
    })

    it('is gone, with everything that it started, when its worker is killed', async () => {
      const kill = await startDoomedWorker('trap "" TERM HUP INT; (setsid sleep 27183 &); sleep 27183')
      onTestFinished(() => around('sleep 27183').forEach(end))
      await expect.poll(() => running('sleep 27183').length).toBe(2)
      kill()
      await expect.poll(() => around('sleep 27183')).toEqual([])
    })

    it('ends when its time is over, also when it stops what is around it, and changes nothing then', async () => {
      const short = await openTestSandbox({ limits: { seconds: 5 } })
      const result = await run('echo x > new.txt; kill -STOP $PPID; sleep 100', [], short)
      expect(result).toMatchObject({ exitCode: null, endedBy: 'time', changes: { written: [], removed: [] } })
    })

    it('ends when all that it started have used its processor time together, and changes nothing then', async () => {
      const short = await openTestSandbox({ limits: { cpuSeconds: 1 } })
      const spin = '(while :; do :; done) &'
      const result = await run(`echo x > new.txt; ${spin} ${spin} ${spin} wait`, [], short)
      expect(result).toMatchObject({ exitCode: null, endedBy: 'cpu', changes: { written: [], removed: [] } })
    })

    it('changes nothing when it ends what is around it', async () => {
      const result = await run('rm kept.txt; kill -KILL $PPID; sleep 100', [file('kept.txt', 'x')])
      expect(result).toMatchObject({ exitCode: null, endedBy: 'itself', changes: { removed: [] } })
    })

    it('keeps regular files only: no links, pipes or their targets', async () => {
      const command = 'ln -s /proc/1/environ a; ln -s / d; mkfifo p; rm own; ln -s /usr/bin/id own; ln kept hard; ls'
      const result = await run(command, [file('own', 'x'), file('kept', 'k')])
      expect(result).toMatchObject({ exitCode: 0, changes: { removed: ['own'] } })
      expect(written(result)).toEqual({ hard: 'k' })
    })

    it.for([
      ['a name with a line end', "touch $'a\\nb'", 'cannot be seen'],
      ['a name that turns its direction', "touch $'a\\u202eb'", 'cannot be seen'],
      ['too many files', 'touch {1..201}', 'at most 200 files'],
      ['a file that is too large', 'head -c 1100000 /dev/zero > x', 'a file has at most'],
      ['too many folders', 'mkdir -p 1/2/3/4/5/6/7/8/9; touch 1/2/3/4/5/6/7/8/9/x', 'folders deep'],
    ] as const)('keeps none of its files when there is %s', async ([, command, why]) => {
      const result = await run(`rm own; ${command}`, [file('own', 'x')])
      expect(result.refused).toContain(why)
      expect(result.changes).toEqual({ written: [], removed: [] })
    })

    it('takes no configuration from what an earlier one left', async () => {
      const planted = await run(
        'for f in .bashrc .profile .bash_profile .gitconfig .perlrc; do echo "echo PLANTED" > $f; done; mkdir -p .git/hooks; cp .bashrc .git/hooks/post-checkout',
      )
      const files = [...planted.changes.written]
      expect(files).toHaveLength(6)
      expect((await run('echo $HOME; bash -lc "echo fine"', files)).output.text).toBe('/tmp\nfine\n')
    })

    it('has no say in how the sandbox is made', async () => {
      expect(await run('--version')).toMatchObject({ exitCode: 127 })
      expect((await run('-- --ro-bind / /host; ls /host')).output.text).toContain('No such file')
    })

    it('writes nothing that steers a terminal or cannot be seen', async () => {
      const { output } = await run(
        "printf '\\e[31mred\\e]52;c;eA==\\a\\e]8;;http://x\\e\\\\link\\u202e\\0<b>\\t|\\r\\n'",
      )
      expect(output.text).toBe('redlink<b>\t|\n')
    })

    it('keeps the beginning and the end of long output', async () => {
      const { output } = await run('seq 100000')
      expect(output.bytes).toBe(588_895)
      expect(output.text).toMatch(/^1\n2\n[\s\S]*characters left out[\s\S]*\n100000\n$/)
      expect(output.text.length).toBeLessThan(17_000)
    })
  }),
)

describe(
  'the bash tool',
  whereThereIsASandbox(() => {
    const tool = createBashTool(sandboxOfTests as Sandbox)

    it('writes to the session what the command wrote', async () => {
      const files = new Map([['a.txt', 'a']])
      const context = { files: filesOf(files), signal: new AbortController().signal }
      const told = await tool.execute({ command: 'cp a.txt b.txt; rm a.txt' } as never, context as never)
      expect(told).toEqual({ exitCode: 0, output: '', written: ['b.txt'], removed: ['a.txt'] })
      expect([...files]).toEqual([['b.txt', 'a']])
    })

    it('is the tool of a worker, whose configuration says whom it runs as', async () => {
      const tools = await createSandboxTools({ sandboxUser: USER_OF_TESTS })
      expect(tools.map(({ name }) => name)).toEqual(['bash'])
      await expect(createSandboxTools({ sandboxUser: { uid: 0, gid: 0 } })).rejects.toThrow('does not run as root')
    })

    it('takes no NUL, and asks first', () => {
      expect(tool.input.safeParse({ command: 'echo \0' }).success).toBe(false)
      expect(tool.input.safeParse({ command: 'echo' }).success).toBe(true)
      expect(tool.needsApproval).toBe(true)
    })
  }),
)

/** A process of its own with a sandbox that runs the command. Answers how to kill it. */
async function startDoomedWorker(command: string): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'doomed-worker-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  await bundlePrograms({ worker: fileURLToPath(new URL('doomed-worker.ts', import.meta.url)) }, folder)
  const env = { PATH: process.env['PATH'], COMMAND: command }
  const worker = spawn(process.execPath, [join(folder, 'worker.mjs')], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  const kill = () => void worker.kill('SIGKILL')
  onTestFinished(kill)
  return kill
}

/** Of all processes of the machine. */
function running(command: string): string[] {
  return processes().filter((id) => commandOf(id) === command)
}

/** Those that run it, and those of the sandbox around them, which were told to. */
function around(command: string): string[] {
  return processes().filter((id) => commandOf(id).includes(command))
}

function end(id: string): void {
  try {
    process.kill(Number(id), 'SIGKILL')
  } catch {
    // It has ended with another one.
  }
}

function processes(): string[] {
  return readdirSync('/proc').filter((id) => /^\d+$/.test(id))
}

function commandOf(id: string): string {
  try {
    return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}
