import { initial } from './0001-initial'
import { fanOut } from './0002-fan-out'
import type { Migration } from './migration'

/** In order, without gaps. */
export const MIGRATIONS: readonly Migration[] = [initial, fanOut]

export const SCHEMA_VERSION = MIGRATIONS.length
