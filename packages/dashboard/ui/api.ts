import { createDurablyClient, type DurablyClient, type Me } from '@coji/durably-server/client'
import { createContext, useContext } from 'react'

/** What the page asks and does. */
export type DashboardApi = DurablyClient

export type Action = Me['actions'][number]

/** Who looks at the page, and at what. */
export interface Viewer {
  readonly api: DashboardApi
  readonly me: Me
}

/** A client for the address that the page was served with. */
export function createApi(): DashboardApi {
  const address = document.querySelector('meta[name="durably-api"]')?.getAttribute('content') ?? 'api'
  return createDurablyClient({ url: new URL(address, document.baseURI).href })
}

export const ViewerContext = createContext<Viewer | null>(null)

export function useViewer(): Viewer {
  const viewer = useContext(ViewerContext)
  if (viewer === null) throw new Error('There is no viewer above this component.')
  return viewer
}

export function useMay(action: Action): boolean {
  return useViewer().me.actions.includes(action)
}
