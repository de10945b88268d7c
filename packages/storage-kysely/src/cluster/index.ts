export { createCluster } from './cluster'
