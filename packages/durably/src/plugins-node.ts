export { fileArchive } from '@coji/durably-plugins/node'
