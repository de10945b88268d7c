export { ACTIONS, type Action, type Done, type Me, type Problem, type RunPage } from './wire'
