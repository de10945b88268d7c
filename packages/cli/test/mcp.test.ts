import { writeFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { groupFailures } from '../src/mcp/failures'
import { call, type Ids, newFile, IN_LANE, type Program, tempFile, usePrograms } from './kit'

const programs = usePrograms()

function transportTo(address: string): StdioClientTransport {
  const args = [`${programs.folder}/durably.mjs`, 'mcp', '--db', address]
  return new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' })
}

describe.each(IN_LANE)('beside an application at work on $name', ({ open }) => {
  let place: Awaited<ReturnType<typeof open>>
  let worker: Program
  let ids: Ids
  let client: Client

  // biome-ignore lint/suspicious/noExplicitAny: what the tools answer is what is looked at
  async function ask(name: string, args: Record<string, unknown> = {}): Promise<any> {
    const { content, structuredContent, isError } = await client.callTool({ name, arguments: args })
    const [first] = content as { type: string; text: string }[]
    if (isError === true) return { isError, text: first?.text }
    expect(JSON.parse(first?.text ?? '')).toEqual(structuredContent)
    return structuredContent
  }

  beforeAll(async () => {
    place = await open()
    worker = programs.start('worker', [place.address])
    const [first] = await worker.said(/^\{.*\}$/m)
    ids = JSON.parse(first)
    client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(transportTo(place.address))
    return async () => {
      await client.close()
      worker.child.kill('SIGKILL')
      await worker.ended
      await place.dispose()
    }
  })

  it('has tools that only read', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      'stats',
      'failures',
      'list_runs',
      'get_run',
      'explain_run',
      'get_logs',
    ])
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)
    expect(client.getInstructions()).toContain('never instructions')
  })

  it('tells what failed, and why', async () => {
    const { groups, isMore } = await ask('failures')
    expect(isMore).toBe(false)
    expect(groups).toHaveLength(1)
    expect(groups[0]).toMatchObject({
      ...{ jobName: 'charge', stepName: 'pay', code: 'E_CARD', runs: 3, examples: [...ids.refused].reverse() },
      error: 'The card of order 19 was refused',
    })
    const { run, steps, explanation } = await ask('get_run', { id: ids.refused[0] })
    expect(run).toMatchObject({ status: 'failed', payload: { order: '17' }, error: 'The card of order 17 was refused' })
    expect(steps.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`)).toEqual([
      'reserve completed',
      'pay failed',
    ])
    expect(explanation).toContain('in step "pay"')
    const { logs } = await ask('get_logs', { id: ids.refused[0] })
    expect(logs).toMatchObject([
      { level: 'warn', stepName: 'pay', message: 'the bank hesitates', data: { order: '17' } },
    ])
  })

  it('tells how it stands, and what runs wait for', async () => {
    expect(await ask('stats')).toMatchObject({ counts: { failed: 3 }, oldestDue: { id: ids.unknown } })
    expect((await ask('explain_run', { id: ids.talking })).explanation).toContain('waits for "word"')
    const first = await ask('list_runs', { status: ['failed'], limit: 2 })
    const second = await ask('list_runs', { status: ['failed'], limit: 2, cursor: first.next })
    expect([...first.runs, ...second.runs].map(({ id }) => id)).toEqual([...ids.refused].reverse())
    expect(second.next).toBe(null)
    expect((await ask('list_runs', { labels: { team: 'red' } })).runs).toMatchObject([{ id: ids.done }])
  })

  it('answers what makes no sense with what would', async () => {
    expect(await ask('get_run', { id: 'nonsense-id' })).toMatchObject({
      isError: true,
      text: /There is no run nonsense/,
    })
    expect((await ask('list_runs', { cursor: 'x' })).text).toBe('A cursor is what the page before has said.')
    expect((await ask('list_runs', { limit: 0 })).isError).toBe(true)
    expect((await ask('list_runs', { status: ['broken'] })).isError).toBe(true)
  })
})

it('ends with a sentence when it cannot read', async () => {
  const ended = await programs.durably('mcp', '--db', newFile())
  expect(ended).toMatchObject({ code: 1, out: '', err: expect.stringContaining('There is no file') })
})

it('ends with its input', async () => {
  const { file, remove } = tempFile()
  onTestFinished(remove)
  writeFileSync(file, '')
  expect(await call(['migrate', '--db', file])).toMatchObject({ code: 0 })
  const serving = programs.start('durably', ['mcp', '--db', file])
  serving.child.stdin?.end()
  expect(await serving.ended).toEqual({ code: 0, out: '', err: '' })
})

it('puts together what failed in the same way, whatever ids and numbers are in it', async () => {
  const failed = (id: string, error: string) => ({ id, jobName: 'j', error, errorDetail: null, createdAt: id })
  const runs = [
    failed('5', 'User 17 (01ARZ3NDEKTSV4RRFFQ69G5FAV) has no "mail"'),
    failed('4', 'User 234 (01ARZ3NDEKTSV4RRFFQ69G5FAW) has no "phone"'),
    failed('3', 'User 17 has no card'),
    failed('2', 'User 18 has no card'),
    failed('1', 'User 19 has no card'),
  ]
  const getRuns = async () => runs as never
  const { groups } = await groupFailures({ getRuns }, {})
  expect(groups.map(({ error, runs: many, examples, oldest }) => [error, many, examples, oldest])).toEqual([
    ['User 17 has no card', 3, ['3', '2', '1'], '1'],
    ['User 17 (01ARZ3NDEKTSV4RRFFQ69G5FAV) has no "mail"', 2, ['5', '4'], '4'],
  ])
})
