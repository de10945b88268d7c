export {
  createMemoryStorage,
  createMemoryStorageWith,
  type MemoryStorage,
  type MemoryStorageOptions,
} from './memory-storage'
