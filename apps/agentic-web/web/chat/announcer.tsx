import { useEffect, useRef, useState } from 'react'
import type { SessionDetail } from '../../src/contract'

const WORDS: Partial<Record<SessionDetail['state'], string>> = {
  running: 'The agent is working.',
  waiting: 'The agent waits for your decision.',
  completed: 'The answer is complete.',
  failed: 'The agent could not answer.',
  cancelled: 'The agent was stopped.',
}

/** Tells screen readers what changes, and not every word of it. */
export function Announcer({ session: { session_id, state } }: { readonly session: SessionDetail }) {
  const [words, setWords] = useState('')
  const before = useRef({ session_id, state })
  useEffect(() => {
    const { current } = before
    if (current.session_id === session_id && current.state !== state) setWords(WORDS[state] ?? '')
    before.current = { session_id, state }
  }, [session_id, state])
  return (
    <p className="visually-hidden" role="status">
      {words}
    </p>
  )
}
