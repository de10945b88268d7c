import { initial } from './0001-initial'
import type { Migration } from './migration'

/** In order, without gaps. */
export const MIGRATIONS: readonly Migration[] = [initial]

export const SCHEMA_VERSION = MIGRATIONS.length
