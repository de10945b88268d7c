import { expect, it } from 'vitest'
import { calculator } from '../tools/calculator'
import { createPostJson } from '../tools/post-json'
import { callsOf } from './turn'

it('a person is asked about a tool that another worker may have', () => {
  const calls = [
    { tool: 'calculator', arguments: { expression: '1+1' } },
    { tool: 'post_json', arguments: { url: 'http://a.test/', body: {} } },
    { tool: 'bash', arguments: { command: 'rm -r .' } },
  ]
  const answer = { text: '', reasoning: '', calls }
  const asked = callsOf(answer, { turn: 1, tools: [calculator, createPostJson(['a.test'])] })
  expect(asked.map(({ tool, needsApproval }) => [tool, needsApproval])).toEqual([
    ['calculator', false],
    ['post_json', true],
    ['bash', true],
  ])
})
