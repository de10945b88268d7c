import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from 'react'

interface Notice {
  readonly id: number
  readonly tone: 'good' | 'bad'
  readonly text: string
}

interface NoticeBoard {
  readonly notices: readonly Notice[]
  tell(text: string, tone?: Notice['tone']): void
  dismiss(id: number): void
}

const NoticesContext = createContext<NoticeBoard | null>(null)
let lastId = 0

export function NoticesProvider({ children }: { readonly children: ReactNode }) {
  const [notices, setNotices] = useState<readonly Notice[]>([])
  const dismiss = useCallback((id: number) => setNotices((all) => all.filter((notice) => notice.id !== id)), [])
  const tell = useCallback<NoticeBoard['tell']>(
    (text, tone = 'good') => {
      lastId += 1
      const id = lastId
      setNotices((all) => [...all.slice(-2), { id, tone, text }])
      // What went wrong stays until it was read.
      if (tone === 'good') setTimeout(() => dismiss(id), 6000)
    },
    [dismiss],
  )
  const board = useMemo(() => ({ notices, tell, dismiss }), [notices, tell, dismiss])
  return <NoticesContext value={board}>{children}</NoticesContext>
}

export function useNotices(): NoticeBoard {
  const board = useContext(NoticesContext)
  if (board === null) throw new Error('There is no place for notices above this component.')
  return board
}

export function Notices() {
  const { notices, dismiss } = useNotices()
  return (
    <div className="notices" role="status">
      {notices.map(({ id, tone, text }) => (
        <div key={id} className={`notice is-${tone}`}>
          <p>{text}</p>
          <button type="button" className="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  )
}
