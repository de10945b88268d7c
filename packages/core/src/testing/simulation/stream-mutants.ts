import type { EventTemplate, RunCommit, StepRecord, Storage } from '../../port'

type Mutant = (storage: Storage) => Storage

const SPOKEN = '{"chunks":true}'

/** Engines that tell of streams what did not happen, as a wrapper around what they read and write. */
export const STREAM_ENGINE_MUTANTS: Readonly<Record<string, Mutant>> = {
  'does not tell that a stream starts again after a crash': (storage) =>
    withStreams(storage, (step) => (step.status === 'started' ? { ...step, checkpoint: null } : step)),
  'does not tell that a stream starts again after a failed attempt of its run': (storage) =>
    withStreams(storage, (step) => (step.status === 'failed' ? { ...step, checkpoint: null } : step)),
  'does not tell that a stream is tried again by its policy': hideRetries,
  'tells that a stream starts again which never spoke': (storage) =>
    withStreams(storage, (step) => (step.status === 'completed' ? step : { ...step, checkpoint: SPOKEN })),
  'says behind a new start what an abandoned try had said': (storage) => {
    const said = new Map<string, EventTemplate>()
    return withEvents(storage, (events, { lease }) =>
      events.flatMap((event) => {
        const name = `${lease.runId} ${stepOf(event)}`
        if (event.type === 'step:chunk') said.set(name, event)
        const before = said.get(name)
        return event.type === 'step:restart' && before !== undefined ? [event, before] : [event]
      }),
    )
  },
  'tells of a new start when it has spoken again': (storage) =>
    withEvents(storage, swapped('step:restart', 'step:chunk')),
  'swaps chunks that go together': (storage) => withEvents(storage, swapped('step:chunk', 'step:chunk')),
  'loses a chunk of a commit that it sends again': loseChunks,
  'speaks on after the end': (storage) => withEvents(storage, swapped('step:chunk', 'step:complete')),
}

function withStreams(storage: Storage, change: (step: StepRecord) => StepRecord): Storage {
  return {
    ...storage,
    getSteps: async (runId, scope) =>
      (await storage.getSteps(runId, scope)).map((step) => (step.kind === 'stream' ? change(step) : step)),
  }
}

type ChangeEvents = (events: readonly EventTemplate[], commit: RunCommit) => readonly EventTemplate[]

function withEvents(storage: Storage, change: ChangeEvents): Storage {
  return {
    ...storage,
    commit: (commits) => storage.commit(commits.map((one) => ({ ...one, events: change(one.events, one) }))),
  }
}

/** The first pair of neighbours of one step that are of these types changes places. */
function swapped(first: string, second: string): (events: readonly EventTemplate[]) => readonly EventTemplate[] {
  return (events) => {
    const at = events.findIndex((event, index) => {
      const next = events[index + 1]
      return event.type === first && next?.type === second && stepOf(event) === stepOf(next)
    })
    return at === -1 ? events : [...events.slice(0, at), ...events.slice(at, at + 2).reverse(), ...events.slice(at + 2)]
  }
}

/** The row of the next try tells what is meant. */
function hideRetries(storage: Storage): Storage {
  const retried = new Set<string>()
  return withEvents(storage, (events, { lease, steps }) => {
    const left = events.filter(
      (event) => event.type !== 'step:restart' || !retried.has(`${lease.runId} ${stepOf(event)}`),
    )
    for (const { name, status } of steps) {
      if (status === 'waiting') retried.add(`${lease.runId} ${name}`)
      else if (status !== 'failed') retried.delete(`${lease.runId} ${name}`)
    }
    return left
  })
}

function loseChunks(storage: Storage): Storage {
  const sent = new Set<string>()
  return withEvents(storage, (events, { lease, commitNo }) => {
    const name = `${lease.runId}/${lease.epoch}/${lease.token}#${commitNo}`
    const lost = sent.has(name) ? events.findIndex(({ type }) => type === 'step:chunk') : -1
    sent.add(name)
    return events.filter((_, index) => index !== lost)
  })
}

function stepOf({ payload }: EventTemplate): unknown {
  return (JSON.parse(payload) as { readonly stepName?: unknown }).stepName
}
