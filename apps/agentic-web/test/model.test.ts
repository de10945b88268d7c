import { PermanentError, RetryAfterError } from '@coji/durably'
import { describe, expect, it } from 'vitest'
import type { Question } from '../src/agent/model'
import { createOpenAiModel } from '../src/agent/models/openai'
import { calculator } from '../src/tools/calculator'
import { answerIn, Browser, deployed, piecesIn } from './deployment'
import { type Asked, call, sayAll, startModelServer } from './model-server'

const TOLD: Question = {
  system: 'Be kind.',
  messages: [{ role: 'user', text: 'hello' }],
  tools: [calculator],
  reasoning: 'none',
  signal: new AbortController().signal,
  tell: async () => {},
}

async function ask(answer: (asked: Asked, count: number) => void, question: Partial<Question> = {}) {
  const server = await startModelServer(answer)
  const model = createOpenAiModel({ modelHosts: [server.host] })({ ...server, model: 'm', apiKey: 'sk-1' })
  const told: unknown[] = []
  const tell: Question['tell'] = async (piece) => void told.push(piece)
  return { ...server, told, answer: model.answer({ ...TOLD, tell, ...question }) }
}

describe('a model over HTTP', () => {
  it('is told of the conversation and its tools, and says its answer piece by piece', async () => {
    const { asked, told, answer } = await ask((each) => {
      each.say({ reasoning_content: 'Hm. ' })
      sayAll(each, 'Well, hello there')
    })
    expect(await answer).toEqual({ text: 'Well, hello there', reasoning: 'Hm. ', calls: [] })
    expect(told).toEqual([{ reasoning: 'Hm. ' }, 'Well, ', 'hello ', 'there'])
    const [{ body, authorization } = {} as Asked] = asked
    expect(authorization).toBe('Bearer sk-1')
    expect(body).toMatchObject({ model: 'm', stream: true, tools: [{ function: { name: 'calculator' } }] })
    expect(body.messages.map(({ role }: { role: string }) => role)).toEqual(['system', 'user'])
  })

  it('calls tools, whose arguments come in parts, and never runs them itself', async () => {
    const { answer } = await ask((each) => call(each, 'calculator', '{"expression":"1+1"}'))
    expect((await answer).calls).toEqual([{ tool: 'calculator', arguments: { expression: '1+1' } }])
  })

  it('gets results under ids of our own, also where its own were the same', async () => {
    const turn = { role: 'assistant', text: '', reasoning: '' } as const
    const toolCall = { call: '1.1', tool: 'calculator', arguments: { expression: '1+1' }, needsApproval: false }
    const result = {
      role: 'tool',
      call: '1.1',
      tool: 'calculator',
      arguments: {},
      result: { value: 2 },
      isError: false,
    } as const
    const said = { ...turn, turn: 1, toolCalls: [toolCall] }
    const messages = [...TOLD.messages, said, result, ...TOLD.messages, said, result]
    const { asked, answer } = await ask((each) => sayAll(each, 'two'), { messages })
    await answer
    const ids = asked[0]?.body.messages.flatMap(({ tool_calls, tool_call_id }: Record<string, [{ id: string }]>) => [
      ...(tool_calls ?? []).map(({ id }) => id),
      ...(tool_call_id === undefined ? [] : [tool_call_id]),
    ])
    expect(ids).toEqual(['call_1_1_1', 'call_1_1_1', 'call_2_1_1', 'call_2_1_1'])
  })

  const cut: Readonly<Record<string, (asked: Asked) => void>> = {
    'a connection that is cut': (each) => {
      each.say({ content: 'half of ' })
      each.cut()
    },
    'an end before the end': (each) => {
      each.say({ content: 'half of ' })
      each.end()
    },
    'a chunk that makes no sense': (each) => {
      each.say({ content: 'half of ' })
      each.write('data: {"choices": [{"delta": \n\n')
      each.say({ content: 'it' }, 'stop')
      each.done()
    },
    'an error in the middle': (each) => {
      each.say({ content: 'half of ' })
      each.write('data: {"error":{"message":"overloaded"}}\n\n')
      each.say({}, 'stop')
      each.done()
    },
    'nothing at all': (each) => each.done(),
    'a server in trouble': (each) => each.refuse(500),
    'too much to do': (each) => each.refuse(429),
  }
  it.each(Object.entries(cut))('%s is no answer, and may be asked for again', async (_what, fault) => {
    const { asked, answer } = await ask(fault)
    const error = await answer.then(
      (given) => expect.fail(`It gave ${JSON.stringify(given)}.`),
      (reason) => reason,
    )
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(PermanentError)
    expect(asked).toHaveLength(1)
  })

  it('is asked again when it says so', async () => {
    const { answer } = await ask((each) => each.refuse(429, { 'retry-after': '7' }))
    const error = await answer.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(RetryAfterError)
    expect(error).toMatchObject({ retryAfterMs: 7000, message: expect.stringContaining('429') })
  })

  it('that says in its complaint what it was sent tells nobody the key', async () => {
    const { answer } = await ask((each) => each.refuse(401, {}, `Incorrect key: ${each.authorization}`))
    const error = await answer.catch((reason: Error) => reason)
    expect(String(error)).toContain('Incorrect key: Bearer …')
    expect(JSON.stringify([String(error), Object(error).stack])).not.toContain('sk-1')
  })

  it.each([400, 401, 403, 404])('is not asked again after %d', async (status) => {
    const { answer } = await ask((each) => each.refuse(status))
    await expect(answer).rejects.toBeInstanceOf(PermanentError)
  })

  it('an abort is an abort, and no trouble of the model', async () => {
    const controller = new AbortController()
    const { answer } = await ask(
      (each) => {
        each.say({ content: 'half of ' })
        controller.abort(new Error('told to stop'))
      },
      { signal: controller.signal },
    )
    await expect(answer).rejects.toThrow('told to stop')
  })

  it('that sends elsewhere, or is at no host that is allowed, gets no key', async () => {
    const { answer, asked } = await ask((each) => each.refuse(307, { location: 'http://127.0.0.1:9/v1' }))
    await expect(answer).rejects.toThrow()
    expect(asked).toHaveLength(1)
    const open = createOpenAiModel({ modelHosts: ['api.openai.com'] })
    const chosen = { baseUrl: 'http://169.254.169.254/v1', model: 'm', apiKey: 'sk-1' }
    expect(() => open(chosen)).toThrow(PermanentError)
    expect(() => open({ ...chosen, baseUrl: 'https://api.openai.com@evil.test/v1' })).toThrow(PermanentError)
  })
})

describe('a run with such a model', () => {
  it('tries again what was cut, tells so, and what counts is what came last', async () => {
    const server = await startModelServer((each, count) => {
      if (count === 1) each.refuse(429, { 'retry-after': '0' })
      else if (count === 2) {
        each.say({ content: 'wrong words' })
        each.cut()
      } else sayAll(each, 'right words')
    })
    const deployment = await deployed({ MODEL_HOSTS: server.host })
    const { url } = await deployment.startApi()
    await deployment.startWorker()
    const ada = await new Browser(url).be('ada')
    const settings = { provider: 'openai-compatible', base_url: server.baseUrl, model: 'm', reasoning: 'none' }
    const { body } = await ada.send('PUT', '/api/settings', { ...settings, api_key: 'sk-secret-of-ada' })
    expect(body).toEqual({ ...settings, has_api_key: true })

    const frames = await ada.ended(await ada.say(await ada.newSession(), 'hello'))
    expect(answerIn(frames)).toBe('right words')
    const pieces = piecesIn(frames)
    expect(pieces.filter(({ type }) => type === 'turn-failed')).toHaveLength(2)
    expect(pieces.filter((piece) => piece.type === 'turn' && piece.isRepeated)).toHaveLength(1)
    expect(server.asked.map(({ authorization }) => authorization)).toEqual(Array(3).fill('Bearer sk-secret-of-ada'))
    expect(JSON.stringify(frames)).not.toContain('sk-secret')
    expect(deployment.log.join('')).not.toContain('sk-secret')

    const other = { ...settings, base_url: `http://${server.host}/v2` }
    expect((await ada.send('PUT', '/api/settings', other)).body.has_api_key).toBe(false)
    const elsewhere = { ...settings, base_url: 'http://169.254.169.254/' }
    expect((await ada.send('PUT', '/api/settings', elsewhere)).status).toBe(422)
  })
})
