import type { Run } from '@coji/durably-core'
import { useEffect, useState } from 'react'
import { useViewer } from '../api'
import { hasEnded } from '../run-status'
import { useNow } from '../use-now'

const LOOK_EVERY_MS = 3000

/**
 * The children of a run, newest first: read when the run gets further, and again while one of them goes on. Hints of all runs
 * would be a second connection beside that of the run itself, and a browser has six for all of its tabs.
 */
export function useChildren({ id, currentStepIndex, status }: Run, limit: number): readonly Run[] {
  const { api } = useViewer()
  const [children, setChildren] = useState<readonly Run[]>([])
  const look = useNow(
    children.some((child) => !hasEnded(child)),
    LOOK_EVERY_MS,
  )
  useEffect(() => {
    let isCurrent = true
    // What cannot be read is read again with the next look; the page says elsewhere that it is not up to date.
    api.getRuns({ parent: id, limit }).then(
      (found) => isCurrent && setChildren(found),
      () => {},
    )
    return () => {
      isCurrent = false
    }
  }, [api, id, limit, currentStepIndex, status, look])
  return children
}
