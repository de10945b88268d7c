export { postgres, type PostgresConfig, type PostgresOptions } from '@coji/durably-storage-kysely/postgres'
