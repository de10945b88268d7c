import type { ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { changesBetween, type FileChanges, NO_CHANGES, type SessionFile, troubleWithFiles } from '../files/session-file'
import { packFiles, unpackFiles } from './archive'
import { bwrapArguments } from './arguments'
import { findBwrap, SandboxUnavailable, spawnBwrap, userOfSandbox } from './bwrap'
import { FILES_FD, SECCOMP_FD, STATUS_FD } from './descriptors'
import { DEFAULT_LIMITS, type Limits } from './inside'
import { FirstProcess } from './first-process'
import { type Output, OutputReader } from './output'
import { seccompFilter } from './seccomp'
import type { User } from './user'
import { type Excess, watchUse } from './watch'

export interface SandboxOptions {
  readonly limits?: Partial<Limits>
  /** For a worker that runs as root: whom to run the sandbox as. */
  readonly user?: User
  /** Where bwrap is, when not on the PATH. */
  readonly bwrap?: string
}

export interface SandboxCall {
  readonly command: string
  readonly files: readonly SessionFile[]
  readonly signal?: AbortSignal
}

export interface SandboxResult {
  readonly output: Output
  /** Null when the command did not come to its end. */
  readonly exitCode: number | null
  /** Which limit ended it; `itself` when it ended the sandbox that it was in. */
  readonly endedBy: Excess | 'itself' | null
  /** Of a command that ended; of one that was ended, nothing is kept. */
  readonly changes: FileChanges
  /** Why its files were not kept, although it ended. */
  readonly refused: string | null
}

export interface Sandbox {
  run(call: SandboxCall): Promise<SandboxResult>
}

/** Tries it once, so that a machine that cannot have one says so at the start, not in the middle of a chat. */
export async function openSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  if (process.platform !== 'linux') throw new SandboxUnavailable('The sandbox of the bash tool runs on Linux only.')
  const user = userOfSandbox(options.user)
  const bwrap = options.bwrap ?? findBwrap()
  if (bwrap === null) {
    throw new SandboxUnavailable('The bash tool needs bubblewrap: install it (apt-get install bubblewrap).')
  }
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const sandbox: Sandbox = { run: (call) => new Execution({ bwrap, user, limits, call }).result() }
  const { exitCode, output } = await sandbox.run({ command: 'echo ready', files: [] })
  if (exitCode === 0 && output.text === 'ready\n') return sandbox
  throw new SandboxUnavailable(`The sandbox works on this machine no further than to: ${output.text}`)
}

interface ExecutionOptions {
  readonly bwrap: string
  readonly user: User
  readonly limits: Limits
  readonly call: SandboxCall
}

/** One command in one sandbox of its own. */
class Execution {
  readonly #options: ExecutionOptions
  readonly #output = new OutputReader()
  readonly #errors = new OutputReader()
  readonly #files: Buffer[] = []
  #fileBytes = 0
  #endedBy: Excess | null = null
  #first: FirstProcess | null = null

  constructor(options: ExecutionOptions) {
    this.#options = options
  }

  async result(): Promise<SandboxResult> {
    const { bwrap, user, limits, call } = this.#options
    call.signal?.throwIfAborted()
    const child = spawnBwrap(bwrap, bwrapArguments(call.command, limits), user)
    const kill = () => this.#kill(child)
    const end = (excess: Excess) => {
      this.#endedBy ??= excess
      kill()
    }
    const stopWatching = this.#watch(child, end)
    child.once('exit', kill)
    call.signal?.addEventListener('abort', kill)
    const timer = setTimeout(() => end('time'), limits.seconds * 1000)
    try {
      this.#connect(child, end)
      await closed(child)
    } finally {
      clearTimeout(timer)
      stopWatching()
      call.signal?.removeEventListener('abort', kill)
    }
    call.signal?.throwIfAborted()
    return this.#read()
  }

  #connect(child: ChildProcess, end: (excess: Excess) => void): void {
    const { limits, call } = this.#options
    send(child.stdio[SECCOMP_FD], seccompFilter())
    send(child.stdio[0], packFiles(call.files))
    receive(child.stdio[1], (chunk) => {
      this.#output.add(chunk)
      if (this.#output.bytes > limits.outputBytes) end('output')
    })
    receive(child.stdio[2], (chunk) => this.#errors.add(chunk))
    receive(child.stdio[FILES_FD], (chunk) => {
      this.#fileBytes += chunk.length
      // Each file takes two blocks at most beside its content.
      if (this.#fileBytes > limits.diskBytes + limits.diskEntries * 1024) end('files')
      else this.#files.push(chunk)
    })
  }

  /** bwrap says which process is the sandbox's first. */
  #watch(child: ChildProcess, end: (excess: Excess) => void): () => void {
    let stop = () => {}
    receive((child.stdio as readonly unknown[])[STATUS_FD], (chunk) => {
      const id = /"child-pid"\s*:\s*(\d+)/.exec(chunk.toString('utf8'))?.[1]
      if (id === undefined || this.#first !== null) return
      this.#first = new FirstProcess(Number(id))
      this.#first.yield()
      stop = watchUse(this.#first.id, this.#options.limits, end)
    })
    return () => stop()
  }

  /** Everything in the sandbox ends with its first process, and that one with bwrap; should it not, it is made to. */
  #kill(child: ChildProcess): void {
    child.kill('SIGKILL')
    this.#first?.kill()
  }

  #read(): SandboxResult {
    const output = this.#first !== null ? this.#output.read() : this.#errors.read()
    const nothing = { output, exitCode: null, changes: NO_CHANGES, refused: null }
    if (this.#endedBy !== null) return { ...nothing, endedBy: this.#endedBy }
    const sent = Buffer.concat(this.#files)
    const lineEnd = sent.indexOf('\n')
    const exitCode = /^\d{1,3}$/.exec(sent.subarray(0, Math.max(lineEnd, 0)).toString('latin1'))?.[0]
    if (exitCode === undefined) return { ...nothing, endedBy: 'itself' }
    return { output, exitCode: Number(exitCode), endedBy: null, ...this.#filesAfter(sent.subarray(lineEnd + 1)) }
  }

  #filesAfter(archive: Uint8Array): { changes: FileChanges; refused: string | null } {
    try {
      const after = unpackFiles(archive)
      const refused = troubleWithFiles(after.map(({ path, content }) => ({ path, size: content.byteLength })))
      return refused === null
        ? { changes: changesBetween(this.#options.call.files, after), refused }
        : { changes: NO_CHANGES, refused }
    } catch (error) {
      return { changes: NO_CHANGES, refused: (error as Error).message }
    }
  }
}

/** A process that ends early takes no more: what it says of that comes another way. */
function send(stream: unknown, bytes: Uint8Array): void {
  const writable = stream as Writable
  writable.on('error', () => {})
  writable.end(bytes)
}

function receive(stream: unknown, take: (chunk: Buffer) => void): void {
  const readable = stream as Readable
  readable.on('error', () => {})
  readable.on('data', take)
}

function closed(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new SandboxUnavailable(`bwrap did not start: ${error.message}`)))
    child.once('close', () => resolve())
  })
}
