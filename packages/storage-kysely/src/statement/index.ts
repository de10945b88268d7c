export { FENCES, type Fences, holds } from './fences'
export { type ListedRow, rowsOf, valueOf } from './row-sets'
export {
  type Row,
  runColumns,
  toAudit,
  toEvent,
  toJson,
  toLog,
  toMessage,
  toRun,
  toSchedule,
  toSignal,
  toStep,
} from './rows'
export {
  and,
  assignments,
  compileQuery,
  list,
  namesOf,
  type ParameterName,
  type RunIndex,
  runsBy,
  type Sql,
  type SqlContext,
  type SqlValue,
  statement,
  type Statement,
} from './statement'
export type { StatementTarget, WriteTarget } from './target'
export { awaitersOf, wokenAt, wokenByChildren, wokenBySignal } from './woken'
