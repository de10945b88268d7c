import { initial } from './0001-initial'
import { fanOut } from './0002-fan-out'
import { enqueueFunction } from './0003-enqueue-function'
import { jobLimits } from './0004-job-limits'
import { search } from './0005-search'
import type { Migration } from './migration'

/** In order, without gaps. */
export const MIGRATIONS: readonly Migration[] = [initial, fanOut, enqueueFunction, jobLimits, search]

export const SCHEMA_VERSION = MIGRATIONS.length
