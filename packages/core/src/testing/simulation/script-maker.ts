import type { Random } from './random'
import {
  type Script,
  type ScriptAction,
  type ScriptBranch,
  type ScriptChunk,
  SCRIPTED_JOBS,
  type ScriptPolicy,
  type ScriptStep,
  type ScriptStream,
  type ScriptTransaction,
} from './scripts'

export const SIGNALS = ['go', 'stop'] as const

/** A script by chance: small ones mostly, and something of everything. */
export function makeScript(random: Random, isChild = false): Script {
  const count = Number(random.weighted({ '1': 4, '2': 4, '3': isChild ? 0 : 2, '4': isChild ? 0 : 1 }))
  const actions = Array.from({ length: count }, (_, index) => makeAction(random, `s${index}`, isChild))
  return { actions, ...(random.chance(0.1) && { badOutput: true }) }
}

function makeAction(random: Random, name: string, isChild: boolean): ScriptAction {
  const kind = random.weighted({ branch: 16, parallel: 4, unawaited: 1, progress: 1, log: 1, throw: 1 })
  switch (kind) {
    case 'branch':
      return makeBranch(random, name, isChild)
    case 'parallel': {
      const length = random.between(2, 3)
      const branches = Array.from({ length }, (_, branch) => makeBranch(random, `${name}${branch}`, isChild))
      return { kind, branches: branches.map(withoutOnce) }
    }
    case 'unawaited':
      return { kind, branch: harmless(makeBranch(random, name, true)) }
    case 'progress':
      return { kind, current: random.int(10), total: 10 }
    case 'log':
      return { kind, message: `${name} was here` }
    case 'throw':
      return { kind, message: `${name} throws`, failsUntil: random.between(1, 3) }
  }
}

function makeBranch(random: Random, name: string, isChild: boolean): ScriptBranch {
  const kind = random.weighted({ step: 7, stream: 3, transaction: 2, sleep: 2, waitFor: 3, child: isChild ? 0 : 2 })
  const caught = random.chance(0.4) ? { caught: true } : {}
  switch (kind) {
    case 'step':
      return { kind, step: random.chance(0.3) ? makeRetriedStep(random, name) : makeStep(random, name) }
    case 'stream':
      return { kind, step: makeStream(random, name) }
    case 'transaction':
      return { kind, step: makeTransaction(random, name) }
    case 'sleep':
      return { kind, name, ms: random.chance(0.2) ? { until: makeInstant(random) } : random.pick([0, 80, 900, 4000]) }
    case 'waitFor': {
      const timeout = random.chance(0.5) ? { timeout: random.pick([400, 2000, 6000]) } : {}
      return { kind, name, signal: random.pick(SIGNALS), ...timeout, ...caught }
    }
    case 'child': {
      const delay = random.chance(0.2) ? { delay: random.between(100, 2000) } : {}
      // Keys of their own: a run that holds a key while it waits for a child with that key would wait for ever.
      const key = random.chance(0.3) ? { concurrencyKey: 'children', concurrencyLimit: 2 } : {}
      const options = { ...delay, ...key, ...(random.chance(0.3) && { idempotencyKey: 'child' }) }
      return { kind, name, job: random.pick(SCRIPTED_JOBS), script: makeScript(random, true), options, ...caught }
    }
  }
}

/** Some have passed when the script plays. */
function makeInstant(random: Random): string {
  return new Date(SCRIPTS_START_MS + random.int(25_000)).toISOString()
}

export const SCRIPTS_START_MS = Date.UTC(2030, 0, 1)

function makeStep(random: Random, name: string): ScriptStep {
  return {
    ...makeBody(random, name),
    // Whether the failure or the lost outcome of a `once` step wins would be a matter of time.
    ...(random.chance(0.2)
      ? { once: true }
      : random.chance(0.25) && {
          failsUntil: random.between(1, 2),
          ...(random.chance(0.2) && ({ failure: 'permanent' } as const)),
        }),
    ...(random.chance(0.3) && { caught: true }),
  }
}

function makeBody(random: Random, name: string): ScriptStep {
  return {
    name,
    value: random.int(1000),
    ...(random.chance(0.6) && { ms: random.pick([5, 150, 700, 2500, 5500]) }),
    ...(random.chance(0.2) && { saves: random.between(1, 2) }),
    ...(random.chance(0.2) && { logs: 2 }),
    ...(random.chance(0.15) && { ignoresSignal: true }),
  }
}

function makeRetriedStep(random: Random, name: string): ScriptStep {
  const retry = makePolicy(random)
  const failing = random.chance(0.7)
    ? { fails: random.between(1, retry.maxAttempts - 1) }
    : { failsUntil: random.between(1, 2) }
  const caught = random.chance(0.3) ? { caught: true } : {}
  // Whether a slow body or its time-out wins would be a matter of time.
  if (random.chance(0.25)) {
    const timeout = random.pick([60, 500])
    return { name, value: random.int(1000), retry, timeout, failure: 'hangs', ...failing, ...caught }
  }
  // What is permanent ends the tries, so that it would never come to the good ones of an attempt.
  const failure = random.weighted({ plain: 5, after: 1, permanent: 'fails' in failing ? 0 : 1 })
  const saves = random.chance(0.3) ? { ms: 700, saves: 2 } : {}
  return { ...makeBody(random, name), ...saves, retry, ...failing, ...caught, ...(failure !== 'plain' && { failure }) }
}

/** A step like others, which speaks in the place of its pauses. */
function makeStream(random: Random, name: string): ScriptStream {
  const made = random.chance(0.5) ? makeRetriedStep(random, name) : makeStep(random, name)
  const { once: _once, saves: _saves, ms: _ms, ...step } = made
  const length = random.between(1, 6)
  const hangs = step.failure === 'hangs'
  const chunks = Array.from({ length }, () => makeChunk(random, hangs ? [0] : [0, 0, 0, 30, 90, 700, 2500]))
  return { ...step, chunks, saysBeforeFailing: random.int(length + 1), ...(random.chance(0.4) && { hasty: true }) }
}

function makeTransaction(random: Random, name: string): ScriptTransaction {
  const made = random.chance(0.4) ? makeRetriedStep(random, name) : makeStep(random, name)
  const { once: _once, saves: _saves, timeout: _timeout, failure, ms = 0, ...step } = made
  return { ...step, ms: Math.min(ms, 700), ...(failure !== undefined && failure !== 'hangs' && { failure }) }
}

function makeChunk(random: Random, pauses: readonly [number, ...number[]]): ScriptChunk {
  const ms = random.pick(pauses)
  return { kind: random.chance(0.6) ? 'text' : 'object', ...(ms > 0 && { ms }) }
}

function makePolicy(random: Random): ScriptPolicy {
  const delay = random.pick<ScriptPolicy['delay']>([0, 70, 600, 2500, { from: 300, factor: 3, upTo: 1500 }])
  return { maxAttempts: random.between(2, 4), delay }
}

function withoutOnce(branch: ScriptBranch): ScriptBranch {
  if (branch.kind !== 'step') return branch
  const { once: _once, ...step } = branch.step
  return { kind: 'step', step }
}

function harmless(branch: ScriptBranch): ScriptBranch {
  if (branch.kind === 'stream') return { kind: 'stream', step: withoutFailure(branch.step) }
  if (branch.kind === 'transaction') return { kind: 'transaction', step: withoutFailure(branch.step) }
  if (branch.kind !== 'step') return branch
  const { once: _once, ...step } = branch.step
  return { kind: 'step', step: withoutFailure(step) }
}

function withoutFailure<T extends ScriptStep>(step: T) {
  const { failsUntil: _failsUntil, fails: _fails, failure: _failure, timeout: _timeout, ...rest } = step
  return rest
}
