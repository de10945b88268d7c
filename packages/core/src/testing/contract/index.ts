import type { Capability } from '../../port'
import { ARCHIVING_CASES } from './archiving'
import { AUDIT_CASES, SETTING_CASES } from './audit'
import { CHILD_CASES } from './children'
import { CLAIM_CASES } from './claim'
import { COMMAND_CASES } from './commands'
import { COMMIT_CASES } from './commit'
import type { ContractCase } from './contract-case'
import { BATCH_CASES, DEBOUNCE_CASES, DEBOUNCE_TRANSACTION_CASES } from './debounce'
import { ENQUEUE_CASES, IDEMPOTENCY_CASES } from './enqueue'
import { EVENT_CASES } from './events'
import { FORK_CASES } from './forks'
import { INBOX_CASES, INBOX_TRANSACTION_CASES } from './inbox'
import { LIMIT_CASES } from './limits'
import { LOG_CASES } from './logs'
import { NEXT_DUE_CASES } from './next-due'
import { OUTCOME_CASES } from './outcomes'
import { PAGE_CASES } from './pages'
import { PARKED_CASES } from './parked-runs'
import { ASSIGN_CASES, ORPHAN_CASES, PLACED_START_CASES } from './placement'
import { PURGE_CASES } from './purge'
import { READ_CASES } from './reads'
import { RECOVER_CASES } from './recover'
import { RENEW_CASES } from './renew'
import { REPLAY_CASES } from './replay'
import { REOPEN_CASES, SIGNAL_REOPEN_CASES, TRANSACTION_REOPEN_CASES } from './reopen'
import { REST_CASES } from './rests'
import { RETRY_WAIT_CASES } from './retry-waits'
import { SEARCH_CASES } from './search'
import { LEAD_CASES } from './leads'
import { MAKING_WAY_CASES } from './making-way'
import { SCHEDULE_CASES } from './schedules'
import { SIGNAL_CASES } from './signals'
import { SLOT_CASES } from './slots'
import { STALE_CASES } from './stale'
import { STATISTICS_CASES } from './statistics'
import { STEP_CASES } from './steps'
import { SUSPECT_CASES } from './suspects'
import { TRANSACTION_CASES } from './transaction'
import { WATCH_CASES } from './watch'
import { WAITING_CASES, WORKER_CASES } from './workers'
export type { ContractCase, ContractGroup, ContractStorage, StorageContractSetup } from './contract-case'

/** All that a storage must do, as cases that any test runner can run. */
export const STORAGE_CONTRACT: readonly ContractCase[] = [
  ...ENQUEUE_CASES,
  ...IDEMPOTENCY_CASES,
  ...CLAIM_CASES,
  ...SLOT_CASES,
  ...COMMIT_CASES,
  ...STEP_CASES,
  ...OUTCOME_CASES,
  ...STALE_CASES,
  ...CHILD_CASES,
  ...REST_CASES,
  ...RENEW_CASES,
  ...RECOVER_CASES,
  ...SUSPECT_CASES,
  ...COMMAND_CASES,
  ...PURGE_CASES,
  ...READ_CASES,
  ...PAGE_CASES,
  ...SEARCH_CASES,
  ...RETRY_WAIT_CASES,
  ...PARKED_CASES,
  ...NEXT_DUE_CASES,
  ...EVENT_CASES,
  ...LOG_CASES,
  ...SIGNAL_CASES,
  ...WATCH_CASES,
  ...LIMIT_CASES,
  ...FORK_CASES,
  ...DEBOUNCE_CASES,
  ...BATCH_CASES,
  ...ARCHIVING_CASES,
  ...AUDIT_CASES,
  ...SETTING_CASES,
  ...STATISTICS_CASES,
  ...LEAD_CASES,
  ...SCHEDULE_CASES,
  ...MAKING_WAY_CASES,
  ...WORKER_CASES,
  ...WAITING_CASES,
  ...ASSIGN_CASES,
  ...PLACED_START_CASES,
  ...ORPHAN_CASES,
  ...INBOX_CASES,
  ...REPLAY_CASES,
  ...TRANSACTION_CASES,
  ...INBOX_TRANSACTION_CASES,
  ...DEBOUNCE_TRANSACTION_CASES,
  ...REOPEN_CASES,
  ...SIGNAL_REOPEN_CASES,
  ...TRANSACTION_REOPEN_CASES,
]

/** A case that is left out, and why. */
export interface ExcludedCase {
  readonly name: string
  readonly reason: string
}

/** The cases for one storage. */
export interface SelectedCases {
  readonly cases: readonly ContractCase[]
  /** To be counted and shown: an exclusion is a promise not kept. */
  readonly excluded: readonly ExcludedCase[]
}

/**
 * The cases for a storage with these capabilities, without the ones excluded by name. An exclusion needs a reason and
 * the name of a case that would run, else this throws.
 *
 * ```ts
 * for (const { name, run } of casesFor(['events', 'logs']).cases) it(name, () => run(setup))
 * ```
 */
export function casesFor(
  capabilities: readonly Capability[],
  exclusions: Readonly<Record<string, string>> = {},
): SelectedCases {
  const offered = STORAGE_CONTRACT.filter(({ group }) => group === 'required' || capabilities.includes(group))
  const names = new Set(offered.map(({ name }) => name))
  const excluded = Object.entries(exclusions).map(([name, reason]) => ({ name, reason }))
  for (const { name, reason } of excluded) {
    if (!names.has(name)) throw new Error(`The contract has no case "${name}" for these capabilities to exclude.`)
    if (reason.trim() === '') throw new Error(`The case "${name}" is excluded without a reason.`)
  }
  return { cases: offered.filter(({ name }) => !Object.hasOwn(exclusions, name)), excluded }
}
