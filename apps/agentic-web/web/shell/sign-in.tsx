import { useEffect, useState } from 'react'
import type { Entrance, Me, User } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { wordsFor } from '../api/request'
import { Brand } from '../parts/icons'
import { useTitle } from '../parts/use-title'

interface SignInProps {
  readonly onSignedIn: (me: Me) => void
}

export function SignIn({ onSignedIn }: SignInProps) {
  useTitle('Sign in')
  const [entrance, setEntrance] = useState<Entrance | null>(null)
  const [problem, setProblem] = useState<string | null>(oauthProblem())
  const [isBusy, setIsBusy] = useState(false)
  useEffect(() => {
    agentApi.entrance().then(setEntrance, (error: unknown) => setProblem(wordsFor(error)))
  }, [])

  async function be(user: User) {
    setIsBusy(true)
    try {
      onSignedIn(await agentApi.signInAsDemo(user.id))
    } catch (error) {
      setProblem(wordsFor(error))
      setIsBusy(false)
    }
  }

  return (
    <main className="sign-in">
      <Brand />
      <h1>Who are you?</h1>
      {problem !== null && (
        <p className="field-problem" role="alert">
          {problem}
        </p>
      )}
      {entrance !== null && entrance.signInPath !== null && (
        <a
          className="button primary"
          href={`${entrance.signInPath}?return_to=${encodeURIComponent(location.pathname)}`}
        >
          Sign in
        </a>
      )}
      {entrance !== null && entrance.demoUsers.length > 0 && (
        <>
          <p className="muted">This is a demo: choose who you want to be. The two see nothing of each other.</p>
          <ul className="demo-users">
            {entrance.demoUsers.map((user) => (
              <li key={user.id}>
                <button type="button" disabled={isBusy} onClick={() => void be(user)}>
                  <span className="avatar" aria-hidden="true">
                    {user.name.slice(0, 1)}
                  </span>
                  {user.name}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </main>
  )
}

/** Why one came back from the identity provider without being signed in. The code is shown as text, and is no more. */
function oauthProblem(): string | null {
  const code = new URLSearchParams(location.search).get('oauth_error')
  return code === null ? null : `Signing in did not work (${code.slice(0, 60)}). Try it again.`
}
