export { fileArchive } from './file-archive'
