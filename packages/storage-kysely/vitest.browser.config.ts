import { join } from 'node:path'
import { playwright } from '@vitest/browser-playwright'
import sqlocal from 'sqlocal/vite'
import { defineProject } from 'vitest/config'
import { chromiumOptionsIfAny } from '../../test/chromium.ts'
import { FOLDER } from '../../test/machine-setup.ts'
import { reportSuite, type SuiteReport } from '../../test/report.ts'
import { scaled } from '../../test/scale.ts'
import { MACHINE_SETUP, PATIENCE } from '../../vitest.preset.ts'

export default defineProject({
  plugins: [sqlocal()],
  resolve: { conditions: ['@coji/durably-source', 'module', 'browser', 'development|production'] },
  // Found while the tests run, they would reload the page.
  optimizeDeps: { include: ['sqlocal > coincident', 'kysely'] },
  test: {
    ...PATIENCE,
    // Their statements are those of the other databases on SQLite, which the quick lane tries with all cases.
    provide: { everyNthCase: scaled({ quick: 24, full: 1 }) },
    name: 'storage-kysely-browser',
    include: ['test-browser/**/*.test.ts'],
    globalSetup: [MACHINE_SETUP, '../../test/chromium.ts'],
    maxConcurrency: 8,
    browser: {
      enabled: true,
      // Pages of one profile have one storage. Said of the project, vitest would begin with them when all others are done.
      fileParallelism: false,
      headless: true,
      screenshotFailures: false,
      // A profile: what is stored without one is in another process, and each read of a page a message to it.
      provider: playwright({ launchOptions: chromiumOptionsIfAny(), persistentContext: join(FOLDER, 'profile') }),
      commands: { reportSuite: (_context, report: SuiteReport) => reportSuite(report) },
      instances: [{ browser: 'chromium' }],
    },
  },
})
