import type { Random } from './random'
import type { Script, ScriptAction, ScriptStep } from './scripted-jobs'

/** A script by chance: small ones mostly, and something of everything. */
export function makeScript(random: Random): Script {
  const count = random.weighted({ '1': 4, '2': 4, '3': 2, '4': 1 })
  const actions = Array.from({ length: Number(count) }, (_, index) => makeAction(random, `s${index}`))
  return { actions, ...(random.chance(0.1) && { badOutput: true }) }
}

function makeAction(random: Random, name: string): ScriptAction {
  const kind = random.weighted({ step: 12, parallel: 3, unawaited: 1, progress: 1, log: 1, throw: 1 })
  switch (kind) {
    case 'step':
      return { kind, step: makeStep(random, name) }
    case 'parallel': {
      const steps = Array.from({ length: random.between(2, 3) }, (_, branch) => makeStep(random, `${name}${branch}`))
      // One failing branch at most, or which error wins would be a matter of time.
      return { kind, steps: steps.map((step, index) => plain(step, index > 0)) }
    }
    case 'unawaited':
      return { kind, step: plain(makeStep(random, name), true) }
    case 'progress':
      return { kind, current: random.int(10), total: 10 }
    case 'log':
      return { kind, message: `${name} was here` }
    case 'throw':
      return { kind, message: `${name} throws`, failsUntil: random.between(1, 3) }
  }
}

function makeStep(random: Random, name: string): ScriptStep {
  return {
    name,
    value: random.int(1000),
    ...(random.chance(0.6) && { ms: random.pick([5, 150, 700, 2500, 5500]) }),
    // Whether the failure or the lost outcome of a `once` step wins would be a matter of time.
    ...(random.chance(0.2) ? { once: true } : random.chance(0.25) && { failsUntil: random.between(1, 2) }),
    ...(random.chance(0.3) && { caught: true }),
    ...(random.chance(0.2) && { saves: random.between(1, 2) }),
    ...(random.chance(0.2) && { logs: 2 }),
    ...(random.chance(0.15) && { ignoresSignal: true }),
  }
}

function plain({ once: _once, failsUntil, ...step }: ScriptStep, neverFails: boolean): ScriptStep {
  return { ...step, ...(!neverFails && failsUntil !== undefined && { failsUntil }) }
}
