import { setTimeout as sleep } from 'node:timers/promises'
import type { MessageContent } from '../../contract'
import type { Answer, Model, Question } from '../model'

/**
 * A model without a key, which always says the same to the same: it repeats what it was told, `write 200 words` makes it say so
 * many, sums are for the calculator, `note: …` writes a file, and `/name {…}` calls a tool, one a line.
 */
export function createDemoModel({ wordMs }: { readonly wordMs: number }): Model {
  return {
    async answer({ messages, tell, signal }) {
      const { text, thought = '', calls = [] } = planOf(messages)
      const say = async (words: string, toPiece: (word: string) => Parameters<Question['tell']>[0]) => {
        for (const word of words.split(/(?<= )/)) {
          if (wordMs > 0) await sleep(wordMs, undefined, { signal })
          signal.throwIfAborted()
          if (word !== '') await tell(toPiece(word))
        }
      }
      await say(thought, (reasoning) => ({ reasoning }))
      await say(text, (word) => word)
      return { text, reasoning: thought, calls }
    },
  }
}

interface Plan {
  readonly text: string
  readonly thought?: string
  readonly calls?: Answer['calls']
}

const SUM = /\(*\d[\d\s.()]*[-+*/][-+*/\d\s.()]*\d\)*/
const LONGEST_SUM = 500
const NOTE = /^note:\s*(.+)$/is
const WORDS = /\bwrite (\d{1,5}) words\b/i
const CALL = /^\/(\w+)(?: (\{.*\}))?$/

function planOf(messages: readonly MessageContent[]): Plan {
  const last = messages.at(-1)
  if (last?.role === 'tool') return afterTools(messages)
  const asked = last?.role === 'user' ? last.text : ''
  const calls = asked.split('\n').flatMap((line) => callIn(line.trim()))
  if (calls.length > 0) return { text: 'I will look into it. ', thought: 'A tool knows this better. ', calls }
  const words = Number(WORDS.exec(asked)?.[1] ?? 0)
  if (words > 0) return { text: Array.from({ length: words }, (_, n) => `word-${n + 1}`).join(' ') }
  const said = asked.includes('\n') ? `\n\n${asked}\n\n` : ` **${asked}**. `
  return { text: `You said:${said}This is the demo model, which needs no key.` }
}

function callIn(line: string): { readonly tool: string; readonly arguments: unknown }[] {
  const [, tool, given = '{}'] = CALL.exec(line) ?? []
  if (tool !== undefined) return [{ tool, arguments: parse(given) }]
  const note = NOTE.exec(line)?.[1]
  if (note !== undefined) return [{ tool: 'write_file', arguments: { path: 'notes.md', text: `${note}\n` } }]
  const sum = line.length < LONGEST_SUM ? SUM.exec(line)?.[0] : undefined
  return sum === undefined || WORDS.test(line) ? [] : [{ tool: 'calculator', arguments: { expression: sum.trim() } }]
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { text }
  }
}

function afterTools(messages: readonly MessageContent[]): Plan {
  const from = messages.map(({ role }) => role).lastIndexOf('assistant')
  const lines = messages.slice(from + 1).map((message) => {
    if (message.role !== 'tool') return ''
    const said = typeof message.result === 'string' ? message.result : JSON.stringify(message.result)
    return `- \`${message.tool}\` ${message.isError ? 'failed' : 'says'}: ${said}\n`
  })
  return { text: `This is what came of it:\n\n${lines.join('')}` }
}
