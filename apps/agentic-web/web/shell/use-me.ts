import { useCallback, useEffect, useState } from 'react'
import type { Me } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { statusOf, wordsFor } from '../api/request'

type Asked =
  | { readonly kind: 'asking' }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'known'; readonly me: Me }
  | { readonly kind: 'trouble'; readonly words: string }

const AGAIN_MS = 3000

/** Who looks at the page. A server that is away is asked again. */
export function useMe(): readonly [Asked, (me: Me) => void] {
  const [asked, setAsked] = useState<Asked>({ kind: 'asking' })
  const [tries, setTries] = useState(0)
  useEffect(() => {
    let isCurrent = true
    let timer: ReturnType<typeof setTimeout> | undefined
    agentApi.me().then(
      (me) => isCurrent && setAsked({ kind: 'known', me }),
      (error: unknown) => {
        if (!isCurrent) return
        if (statusOf(error) === 401) return setAsked({ kind: 'nobody' })
        setAsked({ kind: 'trouble', words: wordsFor(error) })
        timer = setTimeout(() => setTries(tries + 1), AGAIN_MS)
      },
    )
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [tries])
  const know = useCallback((me: Me) => setAsked({ kind: 'known', me }), [])
  return [asked, know]
}
