import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { ROOT } from './root.ts'

/** What takes tens of seconds: begun last, it would keep one core waiting for another at the end. */
const LONGEST = [
  'packages/durably/test/tabs/frozen.test.ts',
  'packages/storage-kysely/test/contract.test.ts',
  'packages/core/src/testing/simulation.test.ts',
  'apps/browser-demo/test/tab-closed.test.ts',
  'apps/browser-demo/test/browser-killed.test.ts',
  'packages/durably/test/postgres/clocks.test.ts',
  'packages/durably/test/processes/stop-cont.test.ts',
  'packages/durably/test/postgres/stop-cont.test.ts',
  'packages/durably/test/tabs/leader.test.ts',
  'test/pack.test.ts',
  'apps/browser-demo/test/screen.test.ts',
  'apps/browser-demo/test/look.test.ts',
  'packages/durably/test/postgres/soak.test.ts',
  'packages/durably/test/postgres/restart.test.ts',
  'packages/durably/test/processes/kill.test.ts',
  'packages/durably/test/queue/killed.test.ts',
  'packages/storage-kysely/test/fences.test.ts',
  'packages/storage-kysely/test/migrate.test.ts',
  'packages/storage-kysely/test/contention.test.ts',
  'packages/storage-kysely/test/simulation.test.ts',
  'examples/browser-plain/test/page.test.ts',
]

/** Files of all projects side by side, and those first that would be waited for. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const known = LONGEST.indexOf(relative(ROOT, moduleId).replaceAll('\\', '/'))
      return known === -1 ? LONGEST.length : known
    }
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other))
  }
}
