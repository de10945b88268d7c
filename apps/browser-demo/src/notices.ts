import { DurablyError } from '@coji/durably'
import type { DemoState } from './demo-state'
import type { Observable } from './observable'

const TITLES: Readonly<Record<string, string>> = {
  STORAGE_FULL: 'The storage is full',
  STORAGE_HELD: 'Another tab holds the database',
  STORAGE_BUSY: 'The database is busy',
  STORAGE_UNAVAILABLE: 'The database does not answer',
  CONFLICT: 'The run has moved on',
  NOT_FOUND: 'The run is gone',
}

/** What happened, for a heading. */
export function titleOf(code: string | null, otherwise: string): string {
  return (code === null ? undefined : TITLES[code]) ?? otherwise
}

export function codeOf(error: unknown): string | null {
  if (error instanceof DurablyError) return error.code
  return error instanceof DOMException && error.name === 'QuotaExceededError' ? 'STORAGE_FULL' : null
}

export function textOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : String(error)
}

/** Shows trouble until it is dismissed. The same trouble again takes the place of the one before. */
export function notify(state: Observable<DemoState>, error: unknown, otherwise: string): void {
  const code = codeOf(error)
  addNotice(state, { code, title: titleOf(code, otherwise), text: textOf(error) })
}

export interface NoticeParams {
  readonly code: string | null
  readonly title: string
  readonly text: string
}

export function addNotice(state: Observable<DemoState>, { code, title, text }: NoticeParams): void {
  const id = code ?? title
  state.set({ notices: [...state.get().notices.filter((notice) => notice.id !== id), { id, title, text }] })
}

export function dismissNotice(state: Observable<DemoState>, id: string): void {
  state.set({ notices: state.get().notices.filter((notice) => notice.id !== id) })
}
