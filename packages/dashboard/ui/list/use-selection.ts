import { useCallback, useMemo, useState } from 'react'

/** Which of the runs are chosen. */
export interface Selection {
  readonly ids: ReadonlySet<string>
  has(id: string): boolean
  toggle(id: string): void
  /** Chooses all of these, or none if all of them are chosen. */
  toggleAll(ids: readonly string[]): void
  clear(): void
}

export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const toggle = useCallback((id: string) => {
    setIds((before) => {
      const after = new Set(before)
      if (!after.delete(id)) after.add(id)
      return after
    })
  }, [])
  const toggleAll = useCallback((all: readonly string[]) => {
    setIds((before) => (all.every((id) => before.has(id)) ? new Set() : new Set(all)))
  }, [])
  const clear = useCallback(() => setIds(new Set()), [])
  return useMemo(
    () => ({ ids, has: (id: string) => ids.has(id), toggle, toggleAll, clear }),
    [ids, toggle, toggleAll, clear],
  )
}
