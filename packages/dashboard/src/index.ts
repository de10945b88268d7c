import { BUILT_ASSETS } from './built-assets'
import { type DashboardHandler, type DashboardOptions, serveDashboard } from './create-dashboard'

export type { DashboardHandler, DashboardOptions } from './create-dashboard'

/**
 * A page to see and steer runs, for your own application and behind its login.
 *
 * ```ts
 * const api = createDurablyHandler(durably, { authorize })
 * const dashboard = createDashboard({ api, basePath: '/admin/durably' })
 * ```
 */
export function createDashboard(options: DashboardOptions): DashboardHandler {
  if (BUILT_ASSETS === null) throw new Error('The page of the dashboard is not built: run `npm run build`.')
  return serveDashboard(BUILT_ASSETS, options)
}
