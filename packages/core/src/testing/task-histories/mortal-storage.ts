import type { RunCommit, Storage } from '../../port'
import { createMortal as createKillable } from '../test-bench'

/** Which call to come is the last one of a process, and whether it still arrives. */
export interface LastCall {
  readonly name: Done['name']
  /** Of those that arrive only those count that change something. */
  readonly inCalls: number
  readonly arrives: boolean
}

/** A call that was carried out, and that nobody will hear of from the process that made it. */
export type Done = {
  [Name in 'claim' | 'commit' | 'recover']: {
    readonly name: Name
    readonly params: Parameters<Storage[Name]>[0]
    readonly answer: Awaited<ReturnType<Storage[Name]>>
  }
}['claim' | 'commit' | 'recover']

export interface MortalStorageParams {
  readonly inner: Storage
  /** The last call was made. */
  readonly onDeath: () => void
  /** The process was dead before these were sent. */
  readonly onUnsent: (commits: readonly RunCommit[]) => void
  /** The process was dead when the answer came. */
  readonly onUnheard: (done: Done) => void
}

export interface MortalStorage {
  readonly storage: Storage
  dieAt(call: LastCall | null): void
  kill(): void
}

/** The storage as one process sees it: of nothing that it calls when it is dead comes anything. */
export function createMortal({ inner, onDeath, onUnsent, onUnheard }: MortalStorageParams): MortalStorage {
  const { storage, kill } = createKillable(inner)
  let isDead = false
  let last: LastCall | null = null

  function isLast(name: Done['name'], arrives: boolean): boolean {
    if (isDead || last?.name !== name || last.arrives !== arrives) return false
    last = { ...last, inCalls: last.inCalls - 1 }
    return last.inCalls === 0
  }

  function die(): void {
    isDead = true
    kill()
    onDeath()
  }

  async function call<Name extends Done['name']>(name: Name, params: ParamsOf<Name>): Promise<AnswerOf<Name>> {
    if (isLast(name, false)) die()
    if (isDead) return silence()
    const method = inner[name] as (params: ParamsOf<Name>) => Promise<AnswerOf<Name>>
    const answer = await method(params)
    if (answer.length > 0 && isLast(name, true)) die()
    if (!isDead) return answer
    onUnheard({ name, params, answer } as unknown as Done)
    return silence()
  }

  return {
    storage: {
      ...storage,
      claim: (params) => call('claim', params),
      commit(commits) {
        const answered = call('commit', commits)
        if (isDead) onUnsent(commits)
        return answered
      },
      recover: (params) => call('recover', params),
    },
    dieAt(planned) {
      last = planned
    },
    kill() {
      isDead = true
      kill()
    },
  }
}

type ParamsOf<Name extends Done['name']> = Parameters<Storage[Name]>[0]
type AnswerOf<Name extends Done['name']> = Awaited<ReturnType<Storage[Name]>>

function silence(): Promise<never> {
  return new Promise<never>(() => {})
}
