type Act = () => unknown

const begins = new Set<Act>()
const endsOfTests = new Set<Act>()
const endsOfFiles = new Set<Act>()

/**
 * For modules that test files import: where files share a process, a hook of vitest in a module would be that of the first
 * file alone. `leftovers-setup.ts` calls these for every file.
 */
export const beforeEachFile = (begin: Act) => void begins.add(begin)
export const afterEachTest = (end: Act) => void endsOfTests.add(end)
export const afterEachFile = (end: Act) => void endsOfFiles.add(end)

export const beginFile = () => inTurn(begins)
export const endTest = () => inTurn([...endsOfTests].reverse())
export const endFile = () => inTurn([...endsOfFiles].reverse())

async function inTurn(acts: Iterable<Act>): Promise<void> {
  for (const act of acts) await act()
}
