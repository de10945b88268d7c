import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openJsonLinesStorage } from '../src/json-lines-storage.ts'
import { newFolder } from './folder.ts'

const WORKER = fileURLToPath(new URL('../src/worker.js', import.meta.url))
const STEPS = 2000

function witnessed(path: string): number[] {
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').map(Number) : []
}

it('a job whose process is killed goes on from its last step in the next process', async () => {
  const folder = newFolder()
  const [file, witness] = [folder.path('runs.jsonl'), folder.path('witness.txt')]

  const watcher = watch(dirname(file))
  const first = spawn(process.execPath, [WORKER, file, witness], { stdio: 'ignore' })
  while (witnessed(witness).length < 300) await once(watcher, 'change')
  first.kill('SIGKILL')
  const [, signal] = await once(first, 'exit')
  watcher.close()
  assert.equal(signal, 'SIGKILL')

  const storage = openJsonLinesStorage(file)
  const [run] = await storage.getRuns({})
  assert.equal(run?.status, 'running')
  const recorded = (await storage.getSteps(run?.id ?? '')).map(({ output }) => Number(output))
  await storage.close?.()
  assert.ok(recorded.length >= 290 && recorded.length < STEPS, `${recorded.length} steps were recorded`)

  const second = spawnSync(process.execPath, [WORKER, file, witness], { encoding: 'utf8' })
  assert.equal(second.status, 0, second.stderr)
  assert.match(second.stdout, /^going on with run /)
  assert.match(second.stdout, new RegExp(`completed: ${(STEPS * (STEPS + 1)) / 2}`))

  const ran = witnessed(witness)
  for (const n of recorded) assert.equal(ran.filter((each) => each === n).length, 1, `body of step ${n}`)
  assert.equal(new Set(ran).size, STEPS)
  assert.ok(ran.length <= STEPS + 1, 'only the body that was cut off may run again')
  folder.remove()
})
