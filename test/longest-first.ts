import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { ROOT } from './root.ts'

/** What takes seconds in the quick lane or minutes in the full one: begun last, it would keep one core waiting for another at the end. */
const LONGEST = [
  'packages/core/src/testing/simulation.test.ts',
  'packages/storage-kysely/test/contract.test.ts',
  'packages/storage-kysely/test/postgres/search.test.ts',
  'packages/storage-kysely/test/search.test.ts',
  'packages/cluster/test/processes/kill.test.ts',
  'packages/cluster/test/processes/cluster.test.ts',
  'packages/cluster/test/many.test.ts',
  'packages/cluster/test/simulation/fleet-simulation.test.ts',
  'packages/cluster/test/simulation/simulation.test.ts',
  'packages/core/src/queue/million.test.ts',
  'packages/cluster/test/calendar.test.ts',
  'packages/server/test/followers.test.ts',
  'packages/server/test/killed.test.ts',
  'apps/agentic-web/test/load.test.ts',
  'packages/durably/test/processes/limits.test.ts',
  'packages/durably/test/fan-out.test.ts',
  'examples/schedules/test/schedules.test.ts',
  'packages/durably/test/tabs/frozen.test.ts',
  'packages/durably/test/postgres/clocks.test.ts',
  'packages/durably/test/tabs/handover.test.ts',
  'packages/durably/test/tabs/groups.test.ts',
  'packages/durably/test/firefox/firefox.test.ts',
  'packages/durably/test/tabs/leader.test.ts',
  'packages/durably/test/tabs/navigation.test.ts',
  'packages/durably/test/processes/poison.test.ts',
  'packages/durably/test/processes/kill.test.ts',
  'apps/agentic-web/web/test/chat.test.ts',
  'apps/agentic-web/web/test/look.test.ts',
  'apps/browser-demo/test/look.test.ts',
  'apps/browser-demo/test/tab-closed.test.ts',
  'apps/browser-demo/test/browser-killed.test.ts',
  'examples/browser-plain/test/page.test.ts',
  'packages/server/test/fuzz.test.ts',
  'packages/dashboard/test/killed.test.ts',
  'apps/agentic-web/test/acceptance.test.ts',
  'test/pack.test.ts',
  'benchmarks/counts.test.ts',
  'apps/node-demo/test/demo.test.ts',
  'packages/durably/test/queue/killed.test.ts',
  'packages/durably/test/processes/stop-cont.test.ts',
  'packages/durably/test/postgres/stop-cont.test.ts',
  'packages/durably/test/postgres/restart.test.ts',
  'packages/durably/test/postgres/soak.test.ts',
  'packages/durably/test/environment/storage-full.test.ts',
  'packages/durably/test/tabs/freeze.test.ts',
  'packages/durably/test/hmr/hmr.test.ts',
  'packages/durably/test/environment/environment.test.ts',
  'apps/browser-demo/test/screen.test.ts',
  'apps/browser-demo/test/calm.test.ts',
  'packages/core/src/queue/histories.test.ts',
  'packages/core/src/step/fan-out.test.ts',
  'packages/storage-kysely/test/fences.test.ts',
  'packages/storage-kysely/test/transaction.test.ts',
  'packages/storage-kysely/test/postgres/interleavings.test.ts',
  'packages/storage-kysely/test/migrate.test.ts',
  'packages/storage-kysely/test/contention.test.ts',
  'packages/storage-kysely/test/simulation.test.ts',
  'examples/custom-storage/run.test.ts',
  'packages/dashboard/test/dashboard.test.ts',
  'examples/postgres-workers/test/kill.test.ts',
  'packages/storage-kysely/test/postgres/plans.test.ts',
  'packages/dashboard/test/look.test.ts',
  'apps/agentic-web/src/sandbox/attempts.test.ts',
  'packages/cli/test/commands.test.ts',
  'packages/core/src/memory/memory-storage.test.ts',
  'packages/durably/test/queue/contract.test.ts',
  'test/docs.test.ts',
  'apps/agentic-web/test/oauth.test.ts',
  'apps/agentic-web/test/chat.test.ts',
  'apps/agentic-web/src/sandbox/sandbox.test.ts',
  'apps/agentic-web/test/operations.test.ts',
  'examples/task-queue/test/start.test.ts',
  'packages/durably/test/postgres/hints.test.ts',
  'examples/cluster/test/cluster.test.ts',
  'packages/storage-kysely/test/postgres/errors.test.ts',
  'apps/browser-demo/test/dashboard.test.ts',
  'packages/plugins/test/log-retention.test.ts',
  'test/entry-types.test.ts',
  'packages/durably/test/processes/interrupted.test.ts',
  'packages/durably/test/postgres/demoted.test.ts',
  'packages/durably/test/postgres/reject.test.ts',
]

const missing = LONGEST.filter((file) => !existsSync(join(ROOT, file)))
if (missing.length > 0) throw new Error(`test/longest-first.ts names files that are not there: ${missing.join(', ')}.`)

/** It has most files, and short ones: what is left of it fills the end of a run. */
const LARGEST = 'packages'

function rankOf({ moduleId }: TestSpecification): number {
  const known = LONGEST.indexOf(relative(ROOT, moduleId).replaceAll('\\', '/'))
  return known === -1 ? LONGEST.length : known
}

/**
 * Files of all projects side by side, and those first that would be waited for. Those of a project follow each other: a process
 * that several files may share ends when the next one is another project's.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ofProjects = new Map<string, number>()
    for (const file of files) {
      const { name } = file.project
      ofProjects.set(name, Math.min(rankOf(file), ofProjects.get(name) ?? LONGEST.length))
    }
    const placeOf = (file: TestSpecification): readonly number[] => {
      const { name } = file.project
      const [rank, ofProject] = [rankOf(file), ofProjects.get(name) ?? LONGEST.length]
      return [name === LARGEST && rank === LONGEST.length ? 1 : 0, ofProject, rank]
    }
    const places = new Map(files.map((file) => [file, placeOf(file)]))
    const compare = (one: TestSpecification, other: TestSpecification) => {
      const [first = [], second = []] = [places.get(one), places.get(other)]
      const at = first.findIndex((value, index) => value !== second[index])
      return at === -1 ? one.project.name.localeCompare(other.project.name) : (first[at] ?? 0) - (second[at] ?? 0)
    }
    return (await super.sort(files)).sort(compare)
  }
}
