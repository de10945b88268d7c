import { initial } from './0001-initial'
import { fanOut } from './0002-fan-out'
import { enqueueFunction } from './0003-enqueue-function'
import { jobLimits } from './0004-job-limits'
import { search } from './0005-search'
import { schedules } from './0006-schedules'
import { inbox } from './0007-inbox'
import { gathered } from './0008-gathered'
import { debounce } from './0009-debounce'
import { archiveAuditSettings } from './0010-archive-audit-settings'
import { statistics } from './0011-statistics'
import { cluster } from './0012-cluster'
import { continuation } from './0013-continuation'
import { endedOfJobs } from './0014-ended-of-jobs'
import { logsAsWritten } from './0015-logs-as-written'
import { ofTenants } from './0016-of-tenants'
import { ofAllTenants } from './0017-of-all-tenants'
import type { Migration } from './migration'

/** In order, without gaps. */
export const MIGRATIONS: readonly Migration[] = [
  initial,
  fanOut,
  enqueueFunction,
  jobLimits,
  search,
  schedules,
  inbox,
  gathered,
  debounce,
  archiveAuditSettings,
  statistics,
  cluster,
  continuation,
  endedOfJobs,
  logsAsWritten,
  ofTenants,
  ofAllTenants,
]

export const SCHEMA_VERSION = MIGRATIONS.length

export { COLUMN_TYPES, type Migration } from './migration'
