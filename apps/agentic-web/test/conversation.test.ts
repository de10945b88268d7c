import { expect, it } from 'vitest'
import { answered, recent } from '../src/agent/conversation'
import type { MessageContent } from '../src/contract'

const user = (text: string): MessageContent => ({ role: 'user', text })
const call = { call: '1.1', tool: 'calculator', arguments: {}, needsApproval: false }
const calls: MessageContent = {
  ...{ role: 'assistant', turn: 1, text: '', reasoning: '' },
  toolCalls: [call, { ...call, call: '1.2' }],
}
const result: MessageContent = {
  role: 'tool',
  call: '1.1',
  tool: 'calculator',
  arguments: {},
  result: 2,
  isError: false,
}

it('a call that was never carried out has a result for the model, in its place', () => {
  const told = answered([user('one'), calls, result, user('two'), calls])
  expect(told.map((each) => (each.role === 'tool' ? [each.call, each.isError] : each.role))).toEqual([
    ...['user', 'assistant', ['1.1', false], ['1.2', true]],
    ...['user', 'assistant', ['1.1', true], ['1.2', true]],
  ])
})

it('of a conversation that is too long its end is told, from something the user said on', () => {
  const long = 'x'.repeat(150_000)
  const messages = [user('first'), calls, result, user(long), calls, result, user(long), user(long)]
  expect(recent(messages)).toEqual(messages.slice(6))
  expect(recent([user('x'.repeat(500_000))])).toHaveLength(1)
  expect(recent(messages.slice(0, 4))).toHaveLength(4)
})
