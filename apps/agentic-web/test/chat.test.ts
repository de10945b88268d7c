import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { readApiConfig } from '../src/config'
import type { Piece } from '../src/contract'
import { openDatabase } from '../src/database/open'
import { type AnyTool, defineTool, type ToolContext } from '../src/tools/tool'
import {
  type Answered,
  answerIn,
  Browser,
  deploy,
  type Deployment,
  type Frame,
  isPiece,
  isSuspended,
  piecesIn,
} from './deployment'

let deployment: Deployment & { end(): Promise<void> }
let urls: readonly string[]
let worker: Awaited<ReturnType<Deployment['startWorker']>>

beforeAll(async () => {
  deployment = await deploy({ DEMO_WORD_MS: '1' })
  const apis = await Promise.all([deployment.startApi(), deployment.startApi()])
  urls = apis.map(({ url }) => url)
  worker = await deployment.startWorker()
})
afterAll(() => deployment.end())

function untilAborted(signal: AbortSignal, begun: () => void): Promise<never> {
  return new Promise((_succeed, fail) => {
    signal.addEventListener('abort', () => fail(signal.reason))
    begun()
  })
}

/** Nobody takes a run meanwhile. */
async function withoutWorkers(act: () => Promise<void>): Promise<void> {
  await worker.stop()
  await act()
  worker = await deployment.startWorker()
}

it('answers, and keeps what was said', async () => {
  const ada = await new Browser(...urls).be('ada')
  const session = await ada.newSession()
  const begun = await ada.post('/api/runs', { session_id: session, message: 'Hello there' })
  expect(begun).toEqual({ status: 202, body: { run_id: expect.any(String), status: 'queued' } })
  const { run_id: run } = begun.body
  const frames = await ada.ended(run)
  expect(answerIn(frames)).toContain('You said: **Hello there**')
  expect(frames.map(({ id }) => id).filter((id) => id !== null)).toEqual(frames.slice(0, -1).map((_, n) => n + 1))
  const { body } = await ada.get(`/api/sessions/${session}`)
  expect(body).toMatchObject({ title: 'Hello there', state: 'completed', runs: [{ run_id: run, status: 'completed' }] })
  expect(body.messages.map(({ content }: Answered) => [content.role, content.text])).toEqual([
    ['user', 'Hello there'],
    ['assistant', answerIn(frames)],
  ])
})

it('names a session after its first message, unless it has a name', async () => {
  const ada = await new Browser(...urls).be('ada')
  const { session_id } = (await ada.post('/api/sessions', { title: 'Mine' })).body
  await ada.ended(await ada.say(session_id, 'Hello there'))
  expect((await ada.get(`/api/sessions/${session_id}`)).body.title).toBe('Mine')
})

it('by the old contract, two first messages at once begin one session', async () => {
  const ada = await new Browser(...urls).be('ada')
  const init = { method: 'POST', body: '{"message":"hello"}', headers: { 'content-type': 'application/json' } }
  const lastOf = async (frames: AsyncIterable<Frame>) => {
    let last: Frame | null = null
    for await (const frame of frames) last = frame
    return last
  }
  const ends = await Promise.all([1, 2, 3].map(() => lastOf(ada.frames('/api/chat/of-several-tabs', init))))
  for (const end of ends) expect(end).toMatchObject({ event: 'done', data: { status: 'completed' } })
  expect((await ada.get('/api/sessions/of-several-tabs')).body.runs).toHaveLength(3)
})

it('tells who looks at lists how each run ends, at an instance that does nothing else', async () => {
  const [first = '', second = ''] = urls
  const ada = await new Browser(first).be('ada')
  const quiet = await deployment.startApi()
  const elsewhere = new Browser(quiet.url)
  for (const pair of ada.cookies) elsewhere.cookies.set(...pair)
  const told: Answered[] = []
  const hints = async () => {
    for await (const { data } of elsewhere.frames('/api/durably/events')) told.push(data)
  }
  // Ends with its server.
  const heard = hints().catch(() => {})
  ada.urls = [second]
  const runs: string[] = []
  const sayAgain = async () => {
    const run = await ada.say(await ada.newSession(), 'Hello there')
    runs.push(run)
    await ada.ended(run)
    return told.map(({ status }) => status)
  }
  // Who has only just begun to listen may miss the first one.
  await expect.poll(sayAgain).toContain('completed')
  expect(runs).toEqual(expect.arrayContaining(told.map(({ id }) => id)))
  await quiet.stop()
  await heard
})

it('calls tools, and tells what came of it', async () => {
  const ada = await new Browser(...urls).be('ada')
  const session = await ada.newSession()
  const frames = await ada.ended(await ada.say(session, 'What is (2+3)*4 ?'))
  expect(piecesIn(frames).filter(({ type }) => /^(tool|turn-end)/.test(type))).toMatchObject([
    { type: 'turn-end', toolCalls: [{ call: '1.1', tool: 'calculator' }] },
    { type: 'tool-start', call: '1.1' },
    { type: 'tool-result', call: '1.1', result: { value: 20 }, isError: false },
    { type: 'turn-end', toolCalls: [] },
  ])
  expect(answerIn(frames)).toContain('20')
})

it('tells what is wrong with a call that makes no sense, which it does not make', async () => {
  const ada = await new Browser(...urls).be('ada')
  const frames = await ada.ended(await ada.say(await ada.newSession(), '/calculator {"expression":7}'))
  expect(piecesIn(frames).filter(isPiece('tool-result'))).toMatchObject([
    { call: '1.1', isError: true, result: expect.stringContaining('make no sense') },
  ])
})

it('asks before it writes, takes edited arguments, and keeps the file with the result', async () => {
  const ada = await new Browser(...urls).be('ada')
  const session = await ada.newSession()
  const run = await ada.say(session, 'note: buy milk')
  const asked = await ada.until(run, isPiece('asked'))
  expect(asked).toEqual({ type: 'asked', call: '1.1', name: 'approval 1.1', why: 'approval' })
  await expect
    .poll(async () => (await ada.get('/api/approvals')).body.approvals)
    .toMatchObject([{ run_id: run, session_title: 'note: buy milk', tool: 'write_file', call: '1.1' }])
  await expect
    .poll(async () => (await ada.get(`/api/runs/${run}`)).body)
    .toMatchObject({ status: 'running', isWaiting: true })

  const address = `/api/approvals/${run}/${encodeURIComponent('approval 1.1')}`
  const wrong = await ada.post(address, { decision: 'approve', arguments: { path: 7 } })
  expect(wrong).toMatchObject({ status: 422, body: { code: 'VALIDATION' } })
  const right = { decision: 'approve', arguments: { path: 'list.md', text: 'buy bread' } }
  expect(await ada.post(address, right)).toMatchObject({ status: 200 })
  expect((await ada.post(address, right)).status).toBe(409)

  const frames = await ada.ended(run)
  expect(piecesIn(frames)).toContainEqual({
    ...{ type: 'decided', call: '1.1', name: 'approval 1.1', decision: 'approve', reason: null },
    arguments: right.arguments,
  })
  expect((await ada.get(`/api/sessions/${session}/files`)).body.files).toMatchObject([{ path: 'list.md', size: 9 }])
  const file = await ada.fetch(`/api/sessions/${session}/files/list.md`)
  expect(await file.text()).toBe('buy bread')
  expect(file.headers.get('content-disposition')).toContain('attachment')
})

it('decides by a signed link, without a login, once', async () => {
  const ada = await new Browser(...urls).be('ada')
  const run = await ada.say(await ada.newSession(), 'note: buy milk')
  await ada.until(run, isPiece('asked'))
  const { body } = await ada.post(`/api/approvals/${run}/${encodeURIComponent('approval 1.1')}/link`)
  const { pathname, search } = new URL(body.refuse_url)
  const anybody = new Browser(...urls)
  expect((await anybody.fetch(`${pathname}${search}`)).status).toBe(200)
  const confirmed = await anybody.fetch(`${pathname}${search}`, {
    method: 'POST',
    headers: { origin: 'null', 'sec-fetch-site': 'same-origin' },
  })
  expect(confirmed.status).toBe(200)
  expect(piecesIn(await ada.ended(run))).toContainEqual(
    expect.objectContaining({ type: 'decided', decision: 'refuse' }),
  )
  expect((await anybody.fetch(`${pathname}${search}`, { method: 'POST' })).status).toBe(409)
})

describe('a decision by a signed link and one in the chat', () => {
  const orders = ['in the chat first', 'by the link first', 'at the same time'] as const
  it.each(orders)('are one, also when no worker has heard of the first: %s', async (order) => {
    const ada = await new Browser(...urls).be('ada')
    const anybody = new Browser(...[...urls].reverse())
    const run = await ada.say(await ada.newSession(), 'note: buy milk')
    await ada.until(run, isSuspended)
    const address = `/api/approvals/${run}/${encodeURIComponent('approval 1.1')}`
    const { pathname, search } = new URL((await ada.post(`${address}/link`)).body.refuse_url)
    const inTheChat = async () => (await ada.post(address, { decision: 'approve' })).status
    const byTheLink = async () => (await anybody.fetch(`${pathname}${search}`, { method: 'POST' })).status
    let answers: readonly number[] = []
    await withoutWorkers(async () => {
      if (order === 'at the same time') answers = await Promise.all([inTheChat(), byTheLink()])
      else if (order === 'in the chat first') answers = [await inTheChat(), await byTheLink()]
      else answers = [await byTheLink(), await inTheChat()].reverse()
    })
    expect([...answers].sort()).toEqual([200, 409])
    if (order !== 'at the same time') expect(answers[order === 'in the chat first' ? 0 : 1]).toBe(200)
    const decided = piecesIn(await ada.ended(run)).filter(isPiece('decided'))
    expect(decided).toMatchObject([{ decision: answers[0] === 200 ? 'approve' : 'refuse' }])
  })
})

describe('a call of a tool that only some workers have', () => {
  const shouted: unknown[] = []
  const shout = defineTool({
    name: 'shout',
    description: 'Shouts.',
    input: z.strictObject({ text: z.string() }),
    sideEffects: true,
    needsApproval: true,
    execute: async (input) => {
      shouted.push(input)
      return 'heard'
    },
  })
  /** Its call is under way until its worker dies. */
  function endlessShout() {
    let tell = () => {}
    const begun = new Promise<void>((resolve) => {
      tell = resolve
    })
    const tool = { ...shout, execute: (_input: never, { signal }: ToolContext) => untilAborted(signal, tell) }
    return { tool, begun }
  }
  beforeEach(() => void shouted.splice(0))

  const approvalsOf = async (browser: Browser, run: string) => {
    const { approvals } = (await browser.get('/api/approvals')).body
    return approvals.filter(({ run_id }: Answered) => run_id === run).map(({ name }: Answered) => name)
  }
  const decide = (browser: Browser, run: string, { name = 'approval 1.1', ...decision }: Answered) =>
    browser.post(`/api/approvals/${run}/${encodeURIComponent(name)}`, { decision: 'approve', ...decision })
  const isAgain = (piece: Piece): piece is Extract<Piece, { type: 'asked' }> =>
    piece.type === 'asked' && piece.why === 'interrupted'

  /** Another worker, which has the tool, is there for this and nothing else; what it is at when it goes it takes along. */
  async function withShout(act: () => Promise<void>, tool: AnyTool = shout): Promise<void> {
    const other = await deployment.startWorker({ DRAIN_MS: '0' }, { tools: [tool] })
    await act()
    await other.stop()
  }

  async function begin(browser: Browser, text = '/shout {"text":"hello"}'): Promise<string> {
    const run = await browser.say(await browser.newSession(), text)
    await browser.until(run, isSuspended)
    return run
  }

  /** A call that a worker has begun, and has taken its outcome along. */
  async function beginAndDie(browser: Browser, text?: string): Promise<string> {
    const { tool, begun } = endlessShout()
    let run = ''
    await withShout(async () => {
      run = await begin(browser, text)
      await decide(browser, run, {})
      await begun
    }, tool)
    return run
  }

  it('is not made by one that has not, which says why, and is made where it is', async () => {
    const ada = await new Browser(...urls).be('ada')
    let run = ''
    await withoutWorkers(async () => {
      await withShout(async () => {
        run = await begin(ada)
      })
      await decide(ada, run, {})
    })
    const frames = await ada.ended(run)
    expect(piecesIn(frames).filter(isPiece('tool-result'))).toMatchObject([
      { isError: true, result: expect.stringMatching(/"shout" was not called.*another one has it/) },
    ])
    expect(answerIn(frames)).toContain('need the same SANDBOX')
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    expect(shouted).toEqual([])
    const warning = deployment.log.filter((line) => line.includes('other workers have tools'))
    expect(warning.map((line) => JSON.parse(line).tools)).toEqual([['shout']])

    await withoutWorkers(() =>
      withShout(async () => {
        run = await begin(ada)
        await decide(ada, run, {})
        await ada.ended(run)
      }),
    )
    expect(shouted).toEqual([{ text: 'hello' }])
  })

  it('is told of to a person where it was begun by one that died, and not made where it cannot be', async () => {
    const ada = await new Browser(...urls).be('ada')
    let run = ''
    await withoutWorkers(async () => {
      run = await beginAndDie(ada)
    })
    expect(await ada.until(run, isAgain)).toMatchObject({ name: 'interrupted 1.1 try 1' })
    await expect.poll(() => approvalsOf(ada, run)).toEqual(['interrupted 1.1 try 1'])
    await decide(ada, run, { name: 'interrupted 1.1 try 1' })
    const frames = await ada.ended(run)
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    expect(piecesIn(frames).filter(isPiece('tool-result'))).toMatchObject([
      {
        isError: true,
        result: expect.stringMatching(/not called again, and nobody knows whether.*another one has it/),
      },
    ])
    expect(answerIn(frames)).not.toContain('nothing was done')
    expect(shouted).toEqual([])
  })

  it('keeps what came of it when it was made again, also when the run goes on where it cannot be made', async () => {
    const ada = await new Browser(...urls).be('ada')
    const two = '/shout {"text":"one"}\n/shout {"text":"two"}'
    let run = ''
    await withoutWorkers(async () => {
      run = await beginAndDie(ada, two)
      await withShout(async () => {
        const { name } = await ada.until(run, isAgain)
        await decide(ada, run, { name })
        await expect.poll(() => approvalsOf(ada, run)).toEqual(['approval 1.2'])
      })
      expect(shouted).toEqual([{ text: 'one' }])
      await decide(ada, run, { name: 'approval 1.2' })
    })
    const frames = await ada.ended(run)
    expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
    expect(piecesIn(frames).filter(isPiece('tool-result'))).toMatchObject([
      { call: '1.1', isError: false, result: 'heard' },
      { call: '1.2', isError: true, result: expect.stringContaining('"shout" was not called, and nothing was done') },
    ])
    expect(shouted).toEqual([{ text: 'one' }])
  })

  it('is refused by a person as any other', async () => {
    const ada = await new Browser(...urls).be('ada')
    let run = ''
    await withoutWorkers(async () => {
      await withShout(async () => {
        run = await begin(ada)
      })
      await decide(ada, run, { decision: 'refuse', reason: 'too loud' })
    })
    expect(answerIn(await ada.ended(run))).toContain('The user has refused this call: too loud')
  })

  it('leaves no prompt behind, and what an older version has left is none', async () => {
    const ada = await new Browser(...urls).be('ada')
    let run = ''
    await withoutWorkers(async () => {
      await withShout(async () => {
        run = await begin(ada, '/shout {"text":"hello"}\nnote: buy milk')
      })
      await decide(ada, run, {})
    })
    await expect.poll(() => approvalsOf(ada, run)).toEqual(['approval 1.2'])
    const { db, close } = await openDatabase(readApiConfig(deployment.env))
    onTestFinished(close)
    const steps = db.updateTable('durably_steps').where('run_id', '=', run).where('name', '=', 'approval 1.1')
    const { numUpdatedRows } = await steps.set({ status: 'waiting', output: null }).executeTakeFirstOrThrow()
    expect(numUpdatedRows).toBe(1n)
    expect(await approvalsOf(ada, run)).toEqual(['approval 1.2'])
    expect((await decide(ada, run, { decision: 'refuse' })).status).toBe(409)
    expect((await decide(ada, run, { name: 'approval 1.2', decision: 'stop' })).status).toBe(200)
    expect((await ada.ended(run)).at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } })
  })

  it('is refused where none has it', async () => {
    const ada = await new Browser(...urls).be('ada')
    const frames = await ada.ended(await ada.say(await ada.newSession(), '/whisper {"text":"hello"}'))
    expect(answerIn(frames)).toContain('There is no tool "whisper".')
  })
})

it('runs of one session take turns, also while one of them waits for somebody', async () => {
  const ada = await new Browser(...urls).be('ada')
  const session = await ada.newSession()
  const first = await ada.say(session, 'note: one')
  const second = await ada.say(session, 'two')
  await ada.until(first, isPiece('asked'))
  await ada.ended(await ada.say(await ada.newSession(), 'elsewhere things go on'))
  expect((await ada.get(`/api/runs/${second}`)).body.status).toBe('queued')
  await ada.post(`/api/approvals/${first}/${encodeURIComponent('approval 1.1')}`, { decision: 'refuse', reason: 'no' })
  expect(answerIn(await ada.ended(first))).toContain('refused this call: no')
  expect(answerIn(await ada.ended(second))).toContain('two')
})

it('a stop ends the run, wherever it is: queued, answering, or waiting for somebody', async () => {
  const ada = await new Browser(...urls).be('ada')
  const session = await ada.newSession()
  const waiting = await ada.say(session, 'note: one')
  const queued = await ada.say(session, 'two')
  await ada.until(waiting, isPiece('asked'))
  expect((await ada.post(`/api/runs/${queued}/cancel`)).body.status).toBe('cancelled')
  await ada.post(`/api/approvals/${waiting}/${encodeURIComponent('approval 1.1')}`, { decision: 'stop' })
  expect((await ada.ended(waiting)).at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } })

  const answering = await ada.say(session, 'write 20000 words')
  await ada.until(answering, isPiece('text'))
  await ada.post(`/api/runs/${answering}/cancel`)
  expect((await ada.ended(answering)).at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } })
  expect(answerIn(await ada.ended(await ada.say(session, 'and now?')))).toContain('and now?')
})

it('the same key once more is the same run, and for another message a conflict', async () => {
  const ada = await new Browser(...urls).be('ada')
  const session_id = await ada.newSession()
  const wanted = { session_id, message: 'once', idempotency_key: 'k' }
  const [one, two] = [await ada.post('/api/runs', wanted), await ada.post('/api/runs', wanted)]
  expect(two.body).toEqual(one.body)
  expect((await ada.post('/api/runs', { ...wanted, message: 'other' })).status).toBe(409)
})

it('the old contract answers in the same request', async () => {
  const ada = await new Browser(...urls).be('ada')
  const frames = []
  const init = { method: 'POST', body: '{"message":"as before"}', headers: { 'content-type': 'application/json' } }
  for await (const frame of ada.frames('/api/chat/my-old-session', init)) frames.push(frame)
  expect(frames[0]).toMatchObject({ event: 'run', data: { status: 'queued' } })
  expect(answerIn(frames)).toContain('as before')
  expect(frames.at(-1)).toMatchObject({ event: 'done', data: { status: 'completed' } })
  expect((await ada.get('/api/sessions/my-old-session')).status).toBe(200)
  const grace = await new Browser(...urls).be('grace')
  expect((await grace.post('/api/chat/my-old-session', { message: 'mine?' })).status).toBe(404)
})
