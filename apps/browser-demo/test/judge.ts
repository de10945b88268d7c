export interface JudgedStep {
  readonly name: string
  readonly index: number
  readonly status: string
  readonly leaseEpoch: number
  /** When the body began whose result is recorded. */
  readonly startedAt: string
}

export interface SeenStart {
  /** 0 for the first tab (or browser) that had the run, 1 for the one after it. */
  readonly session: number
  readonly part: number
}

export interface JudgeParams {
  /** When each session began, in ms. */
  readonly sessions: readonly number[]
  readonly steps: readonly JudgedStep[]
  readonly starts: readonly SeenStart[]
}

export interface Verdict {
  readonly parts: number
  /** Recorded by the first session, and not run by a later one. */
  readonly skipped: number
  readonly ranAgain: number
  /** What must never happen, in words. */
  readonly faults: readonly string[]
}

/** What happened to the steps of one import, told by a witness outside of it. */
export function judge({ sessions, steps, starts }: JudgeParams): Verdict {
  const parts = steps.map((step) => toPart(step, sessions)).filter((part) => part !== null)
  const startsOf = (number: number) => starts.filter(({ part }) => part === number)
  const ranLater = parts.filter(({ number, session }) => startsOf(number).some((start) => start.session > session))
  const unseen = parts.filter(({ number, session }) => !startsOf(number).some((start) => start.session === session))
  return {
    parts: parts.length,
    skipped: parts.filter((part) => part.session === 0 && !ranLater.includes(part)).length,
    ranAgain: parts.filter(({ number }) => startsOf(number).length > 1).length,
    faults: [
      ...ranLater.map(({ name, epoch }) => `"${name}" ran again although lease ${epoch} had recorded it`),
      ...unseen.map(({ name }) => `"${name}" is recorded by a session that never ran it`),
      ...epochFaults(parts),
      ...rowFaults(steps),
    ],
  }
}

interface Part {
  readonly name: string
  readonly number: number
  readonly epoch: number
  readonly session: number
}

/** Which part a step writes: all have as many rows. */
export function partOf(stepName: string): number | null {
  const [, first, last] = /^rows (\d+)-(\d+)$/.exec(stepName) ?? []
  return first === undefined || last === undefined ? null : Number(last) / (Number(last) - Number(first) + 1)
}

function toPart({ name, leaseEpoch, startedAt }: JudgedStep, sessions: readonly number[]): Part | null {
  const number = partOf(name)
  if (number === null) return null
  const session = sessions.filter((openedAt) => openedAt <= Date.parse(startedAt)).length - 1
  return { name, number, epoch: leaseEpoch, session }
}

/** A lease belongs to one session, and later sessions have later leases. */
function epochFaults(parts: readonly Part[]): string[] {
  return parts.flatMap((part) =>
    parts
      .filter((other) => other.session > part.session && other.epoch <= part.epoch)
      .map(
        (other) =>
          `"${other.name}" was recorded by lease ${other.epoch} after a restart, "${part.name}" by ${part.epoch} before`,
      ),
  )
}

function rowFaults(steps: readonly JudgedStep[]): string[] {
  const names = new Set(steps.map(({ name }) => name))
  const order = steps.map(({ index }) => index).sort((a, b) => a - b)
  return [
    ...(names.size === steps.length ? [] : ['a step has more than one row']),
    ...(order.every((index, place) => index === place) ? [] : [`the steps are numbered ${order.join()}`]),
    ...steps.filter(({ status }) => status !== 'completed').map(({ name, status }) => `"${name}" is ${status}`),
  ]
}
