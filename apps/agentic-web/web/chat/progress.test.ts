import { describe, expect, it } from 'vitest'
import type { Message, Piece, RunView } from '../../src/contract'
import { applyPiece, isOver, NOT_BEGUN, progressOf, withKept } from './progress'

const after = (...pieces: Piece[]) => pieces.reduce(applyPiece, NOT_BEGUN)
const CALL = { call: '1.1', tool: 'write_file', arguments: { path: 'a' }, needsApproval: true }
const TURN_END: Piece = { type: 'turn-end', turn: 1, text: 'I will.', reasoning: '', toolCalls: [CALL] }
const RUN: RunView = {
  ...{ run_id: 'r', session_id: 's', status: 'completed', isWaiting: false, isCancelRequested: false, message: 'Hi' },
  ...{ error: null, tries: 1, created_at: '', started_at: null, finished_at: null },
}

function message(content: Message['content']): Message {
  return { message_id: 'm', run_id: 'r', created_at: '', content }
}

describe('the progress of a run', () => {
  it('grows by the words of a turn, until the turn is over', () => {
    const now = after(
      { type: 'state', state: 'running', error: null },
      { type: 'turn', turn: 1, isRepeated: false },
      { type: 'reasoning', turn: 1, text: 'hm' },
      { type: 'text', turn: 1, text: 'I ' },
      { type: 'text', turn: 1, text: 'wil' },
    )
    expect(now).toMatchObject({ state: 'running', turns: [{ text: 'I wil', reasoning: 'hm', isOver: false }] })
    expect(applyPiece(now, TURN_END).turns).toMatchObject([
      { text: 'I will.', isOver: true, calls: [{ state: 'planned' }] },
    ])
  })

  it('forgets what was told of a turn that begins again, and says that it does', () => {
    const cut: Piece[] = [
      { type: 'turn', turn: 1, isRepeated: false },
      { type: 'text', turn: 1, text: 'half of' },
      { type: 'turn-failed', turn: 1, error: 'cut off' },
    ]
    expect(after(...cut).turns).toMatchObject([{ text: 'half of', error: 'cut off' }])
    const again = after(...cut, { type: 'turn', turn: 1, isRepeated: false }, { type: 'text', turn: 1, text: 'all' })
    expect(again.turns).toMatchObject([{ text: 'all', isRepeated: true, error: null }])
    expect(after(...cut, { type: 'taken-over' }, { type: 'turn', turn: 1, isRepeated: true })).toMatchObject({
      takeovers: 1,
      turns: [{ text: '', isRepeated: true }],
    })
  })

  it('has somebody decide about a call, and shows what it was called with at last', () => {
    const asked = after(TURN_END, { type: 'asked', call: '1.1', name: 'approval 1.1', why: 'approval' })
    expect(asked.turns[0]?.calls).toMatchObject([{ state: 'asking', ask: { name: 'approval 1.1' } }])
    const decided: Piece = { type: 'decided', call: '1.1', name: 'approval 1.1', decision: 'approve', reason: null }
    const edited = applyPiece(asked, { ...decided, arguments: { path: 'b' } })
    expect(edited.turns[0]?.calls).toMatchObject([
      { state: 'planned', ask: null, isEdited: true, arguments: { path: 'b' } },
    ])
    const done = [edited]
      .map((now) => applyPiece(now, { type: 'tool-start', call: '1.1' }))
      .map((now) => applyPiece(now, { type: 'tool-result', call: '1.1', result: 9, isError: false }))
    expect(done[0]?.turns[0]?.calls).toMatchObject([{ state: 'done', result: 9, arguments: { path: 'b' } }])
    const refused = applyPiece(asked, { ...decided, decision: 'refuse', reason: 'no' })
    expect(refused.turns[0]?.calls).toMatchObject([{ state: 'refused', result: 'no' }])
  })

  it('asks again about a call whose outcome was lost', () => {
    const lost = after(TURN_END, { type: 'tool-start', call: '1.1' }, { type: 'tool-interrupted', call: '1.1' })
    expect(lost.turns[0]?.calls).toMatchObject([{ state: 'interrupted' }])
    const asked = applyPiece(lost, { type: 'asked', call: '1.1', name: 'interrupted 1.1 try 1', why: 'interrupted' })
    expect(asked.turns[0]?.calls).toMatchObject([{ state: 'asking', ask: { why: 'interrupted' } }])
  })

  it('ends, and goes on when somebody wants it to', () => {
    const failed = after({ type: 'state', state: 'failed', error: 'no key' })
    expect([isOver(failed), failed.error]).toEqual([true, 'no key'])
    const again = applyPiece(failed, { type: 'state', state: 'queued', error: null })
    expect([isOver(again), again.error]).toEqual([false, null])
  })

  it('is the same from the conversation as it is kept', () => {
    const { type: _, ...said } = TURN_END
    const kept = [
      message({ role: 'user', text: 'Hi' }),
      message({ role: 'assistant', ...said }),
      message({ role: 'tool', call: '1.1', tool: 'write_file', arguments: { path: 'b' }, result: 9, isError: false }),
    ]
    const calls = [{ state: 'done', result: 9, isEdited: true, arguments: { path: 'b' } }]
    expect(progressOf(RUN, kept)).toMatchObject({
      state: 'completed',
      turns: [{ text: 'I will.', isOver: true, calls }],
    })
    // A call that was never begun has no event of its own.
    expect(withKept(after(TURN_END), kept).turns).toMatchObject([{ calls }])
    expect(progressOf({ ...RUN, status: 'running', isWaiting: true }, []).state).toBe('waiting')
  })
})
