import type { Plugin } from '@coji/durably-core'

/** Fails a step whose body takes longer than `ms`. The body is left to itself: what it returns later is dropped. */
export function withStepTimeout(ms: number): Plugin {
  return {
    name: 'step-timeout',
    aroundStep(step, next) {
      return new Promise((resolve, reject) => {
        const late = () => reject(new Error(`Step "${step.stepName}" took longer than ${ms} ms.`))
        const timer = setTimeout(late, ms)
        next()
          .then(resolve, reject)
          .finally(() => clearTimeout(timer))
      })
    },
  }
}
