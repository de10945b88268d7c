import { useRunStore } from '@coji/durably-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { agentApi } from '../api/agent-api'
import { wordsFor } from '../api/request'
import { Brand } from '../parts/icons'
import { useNotices } from '../parts/notices'
import { useTitle } from '../parts/use-title'
import { PageHead } from '../shell/page-head'
import { useChatStore } from './chat-store'
import { Composer } from './composer'

const IDEAS = [
  { title: 'Calculate something', text: 'What is (1234 + 5678) * 9 / 4?' },
  { title: 'Write a note', text: 'note: buy oat milk and two lemons' },
  { title: 'A long answer', text: 'Please write 300 words.' },
] as const

/** Nothing is made before something is said. */
export function NewChat() {
  useTitle('New chat')
  const store = useChatStore()
  const runs = useRunStore()
  const { tell } = useNotices()
  const [, navigate] = useLocation()
  const [isBusy, setIsBusy] = useState(false)
  const begin = async (text: string) => {
    setIsBusy(true)
    try {
      const { session_id } = await agentApi.newSession()
      void store.send(session_id, text)
      navigate(`/chat/${session_id}`)
      runs.refresh()
    } catch (error) {
      tell(wordsFor(error), 'bad')
      setIsBusy(false)
    }
  }
  return (
    <>
      <PageHead title="New chat" />
      <div className="transcript">
        <div className="welcome">
          <Brand />
          <h2>What can I do for you?</h2>
          <p className="muted">
            Answers go on when you close this page, and when the server is restarted. Come back whenever you like.
          </p>
          <ul className="ideas">
            {IDEAS.map(({ title, text }) => (
              <li key={title}>
                <button type="button" disabled={isBusy} onClick={() => void begin(text)}>
                  <strong>{title}</strong>
                  <span className="muted">{text}</span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      </div>
      <div className="chat-foot">
        <Composer onStop={null} onSend={(text) => void begin(text)} />
      </div>
    </>
  )
}
