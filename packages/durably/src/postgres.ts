export { postgres, type PostgresConfig } from '@coji/durably-storage-kysely/postgres'
