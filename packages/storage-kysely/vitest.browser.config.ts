import { playwright } from '@vitest/browser-playwright'
import sqlocal from 'sqlocal/vite'
import { defineProject } from 'vitest/config'
import { chromiumOptionsIfAny } from '../../test/chromium.ts'
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
    provide: { everyNthCase: scaled({ quick: 6, full: 1 }) },
    name: 'storage-kysely-browser',
    include: ['test-browser/**/*.test.ts'],
    globalSetup: [MACHINE_SETUP, '../../test/chromium.ts'],
    maxConcurrency: 8,
    browser: {
      enabled: true,
      headless: true,
      screenshotFailures: false,
      provider: playwright({ launchOptions: chromiumOptionsIfAny() }),
      commands: { reportSuite: (_context, report: SuiteReport) => reportSuite(report) },
      instances: [{ browser: 'chromium' }],
    },
  },
})
