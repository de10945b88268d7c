import { useEffect, useState } from 'react'
import type { Connection } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { wordsFor } from '../api/request'
import { formatMoment } from '../format'
import { useNotices } from '../parts/notices'
import { Card } from './settings-page'

/** Who comes back from the provider is told so, once: it is no part of the address. */
function tellHowItWent(tell: ReturnType<typeof useNotices>['tell']): void {
  const parameters = new URLSearchParams(location.search)
  const code = parameters.get('oauth_error')
  if (code !== null) tell(`The account was not connected (${code.slice(0, 60)}).`, 'bad')
  else if (parameters.has('connected')) tell('The account is connected.')
  else return
  history.replaceState(history.state, '', location.pathname)
}

/** The account at the model provider, connected by OAuth. Nothing is shown where that is not set up. */
export function ConnectionCard() {
  const { tell } = useNotices()
  const [connection, setConnection] = useState<Connection | null>(null)
  useEffect(() => {
    tellHowItWent(tell)
    agentApi.connection().then(setConnection, () => {})
  }, [tell])
  if (connection === null || !connection.isAvailable) return null

  const connect = async () => {
    try {
      const { url } = await agentApi.connect('/settings')
      location.assign(url)
    } catch (error) {
      tell(wordsFor(error), 'bad')
    }
  }
  const disconnect = async () => {
    try {
      await agentApi.disconnect()
      setConnection(await agentApi.connection())
      tell('The account is not connected any more.')
    } catch (error) {
      tell(wordsFor(error), 'bad')
    }
  }
  const { isConnected, connected_at, trouble } = connection
  return (
    <Card title="Account at the model provider">
      {isConnected && connected_at !== null ? (
        <p className="muted">Connected on {formatMoment(connected_at)}.</p>
      ) : (
        <p className="muted">Connect an account instead of pasting a key.</p>
      )}
      {trouble !== null && <p className="field-problem">{trouble}</p>}
      <div className="button-row">
        {(!isConnected || trouble !== null) && (
          <button type="button" className="primary" onClick={() => void connect()}>
            {isConnected ? 'Connect again' : 'Connect'}
          </button>
        )}
        {isConnected && (
          <button type="button" onClick={() => void disconnect()}>
            Disconnect
          </button>
        )}
      </div>
    </Card>
  )
}
