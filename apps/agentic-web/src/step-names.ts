import type { WaitingFor } from '@coji/durably'

/** What a step of an agent run is about, by its name: the names are how its history is read. */
export type StepAbout =
  | { readonly kind: 'turn'; readonly turn: number }
  | { readonly kind: 'ask'; readonly call: string; readonly name: string; readonly why: 'approval' | 'interrupted' }
  | { readonly kind: 'tool'; readonly call: string }

export const stepNames = {
  turn: (turn: number) => `turn ${turn}`,
  /** Asks before a call. */
  approval: (call: string) => `approval ${call}`,
  /** Asks whether a call is to be made again, of which nobody knows whether it was made. */
  interrupted: (call: string, tries: number) => `interrupted ${call} try ${tries}`,
  /** The call itself. */
  tool: (call: string, tries: number) => (tries === 1 ? `tool ${call}` : `tool ${call} try ${tries}`),
  /** Keeps what was said, and the files of a call. */
  keep: (what: string) => `keep ${what}`,
}

const TURN = /^turn (\d+)$/
const ASK = /^(approval|interrupted) (\d+\.\d+)(?: try \d+)?$/
const TOOL = /^tool (\d+\.\d+)(?: try \d+)?$/

/** `null` for steps that the chat does not show. */
export function readStepName(name: string): StepAbout | null {
  const turn = TURN.exec(name)?.[1]
  if (turn !== undefined) return { kind: 'turn', turn: Number(turn) }
  const [, why, asked] = ASK.exec(name) ?? []
  if (asked !== undefined) return { kind: 'ask', call: asked, name, why: why === 'approval' ? why : 'interrupted' }
  const call = TOOL.exec(name)?.[1]
  return call === undefined ? null : { kind: 'tool', call }
}

/** Whether a run rests until a person decides, and not until it is time to try again. */
export function isForSomebody(waitingFor: WaitingFor | null): boolean {
  return waitingFor?.kind === 'steps' && waitingFor.steps.some((name) => readStepName(name)?.kind === 'ask')
}
