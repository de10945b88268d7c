import { createContext, createElement, type ReactNode, useContext, useMemo } from 'react'
import type { RunApi } from './run-api'
import { createRunStore, type RunStore } from './run-store'

const StoreContext = createContext<RunStore | null>(null)

/** What the hooks below it work on. */
export interface DurablyProviderProps {
  /** An instance in this tab, or a client over HTTP. Or a store of your own making, to use it outside of React too. */
  readonly durably: RunApi | RunStore
  readonly children?: ReactNode
}

/** Lets every hook below it read and follow runs. */
export function DurablyProvider({ durably, children }: DurablyProviderProps): ReactNode {
  const store = useMemo(() => (isStore(durably) ? durably : createRunStore(durably)), [durably])
  return createElement(StoreContext, { value: store }, children)
}

/** The store of the provider above, for what the hooks do not offer. */
export function useRunStore(): RunStore {
  const store = useContext(StoreContext)
  if (store === null) throw new Error('There is no <DurablyProvider durably={…}> above this component.')
  return store
}

function isStore(durably: RunApi | RunStore): durably is RunStore {
  return 'api' in durably
}
