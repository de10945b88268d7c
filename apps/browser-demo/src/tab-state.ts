import type { DemoState } from './demo-state'

/** What this tab does about the jobs, as one word. */
export type TabState = 'works' | 'prepares' | 'stops' | 'follows'

export function tabStateOf({ role, worker }: Pick<DemoState, 'role' | 'worker'>): TabState {
  if (role === 'unknown') return 'prepares'
  if (role === 'follower') return 'follows'
  if (worker === 'running') return 'works'
  return worker === 'stopping' ? 'stops' : 'prepares'
}

interface TabWords {
  readonly text: string
  /** For a narrow screen. */
  readonly short: string
}

export const TAB_WORDS: Readonly<Record<TabState, TabWords>> = {
  works: { text: 'This tab runs the jobs', short: 'Works here' },
  prepares: { text: 'This tab gets ready …', short: 'Gets ready …' },
  stops: { text: 'This tab stops running the jobs', short: 'Stops' },
  follows: { text: 'Another tab runs the jobs', short: 'Works elsewhere' },
}
