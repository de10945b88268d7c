import type { Me } from '@coji/durably-server/client'
import { useCallback, useEffect, useState } from 'react'
import type { DashboardApi } from './api'

interface Problem {
  readonly title: string
  readonly text: string
}

interface Asked {
  readonly me: Me | null
  readonly problem: Problem | null
}

/** Who looks, and what they may do: asked once, and again by hand. */
export function useMe(api: DashboardApi): Asked & { retry(): void } {
  const [asked, setAsked] = useState<Asked>({ me: null, problem: null })
  const [tries, setTries] = useState(0)
  useEffect(() => {
    let isCurrent = true
    api.me().then(
      (me) => isCurrent && setAsked({ me, problem: null }),
      (error: unknown) => isCurrent && setAsked({ me: null, problem: toProblem(error) }),
    )
    return () => {
      isCurrent = false
    }
  }, [api, tries])
  const retry = useCallback(() => {
    setAsked({ me: null, problem: null })
    setTries((count) => count + 1)
  }, [])
  return { ...asked, retry }
}

function toProblem(error: unknown): Problem {
  const { status, message } = Object(error) as { readonly status?: number; readonly message?: string }
  const text = message ?? String(error)
  if (status === 401) return { title: 'Please log in first', text }
  if (status === 403) return { title: 'You may not see these runs', text }
  return { title: 'The runs could not be read', text }
}
