import { initial } from './0001-initial'
import { fanOut } from './0002-fan-out'
import { enqueueFunction } from './0003-enqueue-function'
import type { Migration } from './migration'

/** In order, without gaps. */
export const MIGRATIONS: readonly Migration[] = [initial, fanOut, enqueueFunction]

export const SCHEMA_VERSION = MIGRATIONS.length
