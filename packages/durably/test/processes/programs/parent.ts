import { appendFileSync, readSync, writeSync } from 'node:fs'

/** What a program tells the test that started it: one JSON object a line. */
export interface Message {
  readonly type: string
  readonly [key: string]: unknown
}

const STDOUT = 1
/** A pipe of its own: Node makes standard input non-blocking as soon as it listens there. */
const GATE = 3

/** The configuration that the test gave as the only argument. */
export function readConfig<T>(): T {
  return JSON.parse(process.argv[2] ?? '') as T
}

/** Written at once and synchronously: what was said is out even when the process is killed a moment later. */
export function tell(message: Message): void {
  writeSync(STDOUT, `${JSON.stringify(message)}\n`)
}

/** Blocks the whole process, timers included, until the test opens the gate. */
export function blockUntilOpened(): void {
  readSync(GATE, Buffer.alloc(1))
}

/** Resolves with the next line the test writes. */
export async function nextLine(): Promise<string> {
  const [chunk] = (await new Promise<unknown[]>((resolve) => {
    process.stdin.resume()
    process.stdin.once('data', (...data) => resolve(data))
  })) as [Buffer]
  process.stdin.pause()
  return chunk.toString().trim()
}

/** A body that began, as the process that ran it saw it. The file is opened with O_APPEND: lines never mix. */
export function witness(file: string, runId: string, stepName: string): void {
  appendFileSync(file, `${process.pid}\t${runId}\t${stepName}\n`)
}
