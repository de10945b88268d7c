export { channelOf, HintRelay, notifyDue } from './hints'
export { Watchers } from './watch'
