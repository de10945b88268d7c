import type { Capability, Storage } from '../../port'
import { Kit } from './kit'

/** A storage under test. `reopen` gives a fresh one on the same data, as after a kill: the old one is not closed. */
export interface ContractStorage {
  readonly storage: Storage
  reopen(): Promise<Storage>
  close(): Promise<void>
}

/** Opens a migrated storage without any runs, each time. */
export interface StorageContractSetup {
  open(): Promise<ContractStorage>
}

/** What a case is about: the required methods, or one optional group. */
export type ContractGroup = 'required' | Capability

/** One thing a storage must do. `run` rejects with a message that says what it did instead. */
export interface ContractCase {
  readonly group: ContractGroup
  readonly name: string
  run(setup: StorageContractSetup): Promise<void>
}

type CaseBody = (kit: Kit) => Promise<void>

/** Cases from their names; the concern comes before each name. */
export function casesOf(
  group: ContractGroup,
  concern: string,
  bodies: Readonly<Record<string, CaseBody>>,
): ContractCase[] {
  return Object.entries(bodies).map(([name, body]) => ({
    group,
    name: `${concern}: ${name}`,
    run: (setup) => runCase(setup, body),
  }))
}

async function runCase(setup: StorageContractSetup, body: CaseBody): Promise<void> {
  const opened = await setup.open()
  try {
    await body(new Kit(opened))
  } finally {
    await opened.close()
  }
}
