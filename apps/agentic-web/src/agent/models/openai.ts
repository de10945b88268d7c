import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { PermanentError, RetryAfterError } from '@coji/durably'
import { APICallError, jsonSchema, type ModelMessage, streamText, type TextStreamPart, tool, type ToolSet } from 'ai'
import { z } from 'zod'
import type { Config } from '../../config'
import type { MessageContent } from '../../contract'
import { isModelHost } from '../../settings/settings'
import type { AnyTool } from '../../tools/tool'
import type { Answer, Model, Question } from '../model'

const PROVIDER = 'model'

interface Chosen {
  readonly baseUrl: string
  readonly model: string
  readonly apiKey: string | null
}

/** Models at any server that speaks as OpenAI's does: OpenAI, Ollama, llama.cpp. */
export function createOpenAiModel({ modelHosts }: Pick<Config, 'modelHosts'>) {
  return ({ baseUrl, model, apiKey }: Chosen): Model => {
    if (!isModelHost(baseUrl, modelHosts)) throw new PermanentError(`Models are not asked at ${new URL(baseUrl).host}.`)
    const provider = createOpenAICompatible({
      name: PROVIDER,
      baseURL: baseUrl,
      // Who answers with another address would be given the key, and could be anywhere.
      fetch: (input, init) => fetch(input, { ...init, redirect: 'error' }),
      ...(apiKey !== null && { apiKey }),
    })
    const answer = (question: Question) => answerWith(provider(model), question)
    return {
      answer: (question) => answer(question).catch((error: unknown) => Promise.reject(withoutKey(error, apiKey))),
    }
  }
}

type LanguageModel = Parameters<typeof streamText>[0]['model']

async function answerWith(model: LanguageModel, question: Question): Promise<Answer> {
  const { system, messages, tools, reasoning, signal } = question
  const { fullStream } = streamText({
    model,
    system,
    messages: toModelMessages(messages),
    tools: toToolSet(tools),
    abortSignal: signal,
    // The engine tries again, and tells of it.
    maxRetries: 0,
    // What goes wrong is read from the stream.
    onError: () => {},
    ...(reasoning !== 'none' && { providerOptions: { [PROVIDER]: { reasoningEffort: reasoning } } }),
  })
  const said = { text: '', reasoning: '', calls: [] as Answer['calls'][number][], isWhole: false }
  try {
    for await (const part of fullStream) await hear(said, part, question)
  } catch (error) {
    // What a cut throws, an abort throws too: only the signal tells them apart.
    signal.throwIfAborted()
    throw toTrouble(error)
  }
  signal.throwIfAborted()
  if (!said.isWhole) throw new Error('The model stopped in the middle of its answer.')
  const { text, calls } = said
  return { text, reasoning: said.reasoning, calls }
}

interface Said {
  text: string
  reasoning: string
  readonly calls: Answer['calls'][number][]
  isWhole: boolean
}

async function hear(said: Said, part: TextStreamPart<ToolSet>, { tell }: Question): Promise<void> {
  switch (part.type) {
    case 'text-delta':
      said.text += part.text
      if (part.text !== '') await tell(part.text)
      return
    case 'reasoning-delta':
      said.reasoning += part.text
      if (part.text !== '') await tell({ reasoning: part.text })
      return
    case 'tool-call':
      said.calls.push({ tool: part.toolName, arguments: part.input })
      return
    case 'error':
      // A chunk that makes no sense is one of these, and the turn would go on to its end as if nothing were missing.
      throw part.error
    case 'finish':
      said.isWhole = part.rawFinishReason !== undefined
      return
    default:
  }
}

/** A server may say in its complaint what it was sent, and what it says is stored with the run. */
function withoutKey(error: unknown, apiKey: string | null): unknown {
  if (!(error instanceof Error) || apiKey === null || apiKey === '') return error
  error.message = error.message.replaceAll(apiKey, '…')
  error.stack = String(error.stack).replaceAll(apiKey, '…')
  return error
}

const CANNOT_GET_BETTER = new Set([400, 401, 403, 404, 405, 410, 413, 422])
const TOO_MANY = 429
const LONGEST_REPLY = 300

/** What the engine makes of it: tried again, later, or not at all. */
function toTrouble(error: unknown): Error {
  if (!APICallError.isInstance(error)) return error instanceof Error ? error : new Error(wordsOf(error))
  const { statusCode, responseHeaders = {}, message, responseBody = '' } = error
  if (statusCode === undefined) return new Error(message)
  const words = `The model answered ${statusCode}: ${message} ${responseBody.slice(0, LONGEST_REPLY)}`.trim()
  if (CANNOT_GET_BETTER.has(statusCode)) return new PermanentError(words)
  const after = retryAfterMs(responseHeaders['retry-after'])
  if (after !== null && (statusCode === TOO_MANY || statusCode >= 500)) return new RetryAfterError(words, after)
  return new Error(words)
}

function wordsOf(error: unknown): string {
  const { message } = Object(error) as { readonly message?: unknown }
  return typeof message === 'string' ? message : JSON.stringify(error)
}

const LONGEST_WAIT_MS = 10 * 60_000

/** Seconds, or a date. */
function retryAfterMs(given: string | undefined): number | null {
  if (given === undefined) return null
  const ms = /^\d+(\.\d+)?$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_WAIT_MS) : null
}

/** Without `execute`: each call is a step of the engine. */
function toToolSet(tools: readonly AnyTool[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, input }) => {
      const schema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
      return [name, tool({ description, inputSchema: jsonSchema(schema as Parameters<typeof jsonSchema>[0]) })]
    }),
  )
}

/** The ids of calls are ours: of the answer they are in, and their number in it. */
function toModelMessages(messages: readonly MessageContent[]): ModelMessage[] {
  let answers = 0
  return messages.map((message): ModelMessage => {
    if (message.role === 'user') return { role: 'user', content: message.text }
    if (message.role === 'assistant') {
      answers += 1
      const text = message.text === '' ? [] : [{ type: 'text' as const, text: message.text }]
      const calls = message.toolCalls.map(({ call, tool: toolName, arguments: input }) => {
        return { type: 'tool-call' as const, toolCallId: callId(answers, call), toolName, input }
      })
      return { role: 'assistant', content: [...text, ...calls] }
    }
    const { call, tool: toolName, result, isError } = message
    const value = typeof result === 'string' ? result : JSON.stringify(result)
    const output = { type: isError ? ('error-text' as const) : ('text' as const), value }
    return { role: 'tool', content: [{ type: 'tool-result', toolCallId: callId(answers, call), toolName, output }] }
  })
}

function callId(answer: number, call: string): string {
  return `call_${answer}_${call.replace('.', '_')}`
}
