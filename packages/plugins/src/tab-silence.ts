export interface SilenceParams {
  /** Milliseconds between two ticks of a tab that nobody holds up. */
  readonly tickMs: number
  readonly limitMs: number
  readonly startedAt: number
}

/** For how long a tab has listened and heard nothing. */
export interface Silence {
  heard(now: number): void
  /** Counts the time since the tick before, or since something was heard; true when it has been silent for too long. */
  tick(now: number, isListening: boolean): boolean
}

/**
 * A tab that was frozen or asleep itself has not listened, and a hidden one has no say: of a pause of its own it counts two
 * ticks at most, so that after waking up it listens for nearly the whole time before it concludes anything.
 */
export function createSilence({ tickMs, limitMs, startedAt }: SilenceParams): Silence {
  let silentMs = 0
  let lastTickAt = startedAt
  return {
    heard(now) {
      silentMs = 0
      lastTickAt = now
    },
    tick(now, isListening) {
      if (isListening) silentMs += Math.min(now - lastTickAt, 2 * tickMs)
      lastTickAt = now
      if (silentMs < limitMs) return false
      silentMs = 0
      return true
    },
  }
}
