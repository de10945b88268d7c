export { libsql, type LibsqlConfig } from '@coji/durably-storage-kysely/libsql'
