export { sqlocal, type SqlocalConfig } from '@coji/durably-storage-kysely/sqlocal'
