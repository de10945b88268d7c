import { createContext, useContext, useMemo, useSyncExternalStore } from 'react'
import { contractChoice } from '../api/contract-choice'
import { wordsFor } from '../api/request'
import { followRun, startChat, startRun } from '../api/run-source'
import { type Followed, RunFollower } from './run-follower'

/** A message on its way, until the conversation has it. */
export interface PendingMessage {
  readonly key: string
  readonly text: string
  readonly runId: string | null
  /** Why it was not sent. */
  readonly trouble: string | null
}

const NONE: readonly PendingMessage[] = []

/** What this page is about to send, and the runs that it follows, whichever page of it is shown. */
export class ChatStore {
  readonly #followers = new Map<string, RunFollower>()
  readonly #pending = new Map<string, readonly PendingMessage[]>()
  readonly #listeners = new Set<() => void>()
  readonly #onSent: () => void

  constructor(onSent: () => void) {
    this.#onSent = onSent
  }

  follower(runId: string): RunFollower {
    const known = this.#followers.get(runId)
    if (known !== undefined) return known
    const follower = new RunFollower((after, signal) => followRun(runId, after, signal))
    this.#followers.set(runId, follower)
    return follower
  }

  readonly pendingOf = (sessionId: string): readonly PendingMessage[] => this.#pending.get(sessionId) ?? NONE

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async send(sessionId: string, text: string, key: string = newKey()): Promise<void> {
    this.#change(sessionId, key, { key, text, runId: null, trouble: null })
    try {
      const runId = await this.#begin(sessionId, text, key)
      this.#change(sessionId, key, { key, text, runId, trouble: null })
      this.#onSent()
    } catch (error) {
      this.#change(sessionId, key, { key, text, runId: null, trouble: wordsFor(error) })
    }
  }

  /** It is in the conversation now, or is not wanted any more. */
  forget(sessionId: string, key: string): void {
    this.#change(sessionId, key, null)
  }

  async #begin(sessionId: string, text: string, key: string): Promise<string> {
    if (contractChoice() === 'runs') return startRun(sessionId, text, key)
    const { runId, events } = await startChat(sessionId, text, new AbortController().signal)
    this.follower(runId).adopt(events)
    return runId
  }

  #change(sessionId: string, key: string, now: PendingMessage | null): void {
    const all = this.pendingOf(sessionId)
    const isKnown = all.some((message) => message.key === key)
    const changed = all.flatMap((message) => (message.key !== key ? [message] : now === null ? [] : [now]))
    this.#pending.set(sessionId, isKnown || now === null ? changed : [...all, now])
    for (const listener of [...this.#listeners]) listener()
  }
}

/** Also on a page without https, where there is no `randomUUID`. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

export const ChatStoreContext = createContext<ChatStore | null>(null)

export function useChatStore(): ChatStore {
  const store = useContext(ChatStoreContext)
  if (store === null) throw new Error('There is no chat store above this component.')
  return store
}

export function usePending(sessionId: string): readonly PendingMessage[] {
  const store = useChatStore()
  return useSyncExternalStore(store.subscribe, () => store.pendingOf(sessionId))
}

const NOT_FOLLOWED: Followed = { progress: null, trouble: null }

/** `null`: of no run. */
export function useFollowed(runId: string | null): Followed {
  const store = useChatStore()
  const { get, subscribe } = useMemo(() => {
    if (runId === null) return { get: () => NOT_FOLLOWED, subscribe: () => () => {} }
    return store.follower(runId)
  }, [store, runId])
  return useSyncExternalStore(subscribe, get)
}
