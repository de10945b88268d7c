import { createSilence } from './tab-silence'
import { isVisible, onReturn } from './tab-visibility'

/** What tabs tell each other about who leads. */
type Word = { readonly kind: 'beat' } | { readonly kind: 'ask' }

export interface BeatParams {
  readonly channelName: string
  readonly everyMs: number
  /** So much silence, heard by a tab that was awake and visible all the while, means that the leader is frozen. */
  readonly silenceMs: number
  readonly isLeader: () => boolean
  /** While leading: another beat was sent. */
  readonly onBeat: () => void
  readonly onSilence: () => void
}

export interface Beat {
  /** Tells the others at once that there is a leader. */
  send(): void
  end(): void
}

/** The leader's beats, and the others listening for them. */
export function startBeat(params: BeatParams): Beat {
  const { everyMs, silenceMs, isLeader } = params
  const channel = new BroadcastChannel(params.channelName)
  const say = (kind: Word['kind']) => channel.postMessage({ kind } satisfies Word)
  const ask = () => {
    if (!isLeader()) say('ask')
  }
  const silence = createSilence({ tickMs: everyMs, limitMs: silenceMs, startedAt: performance.now() })
  const tick = () => {
    const isTooLong = silence.tick(performance.now(), !isLeader() && isVisible())
    if (isLeader()) {
      silence.heard(performance.now())
      say('beat')
      params.onBeat()
    } else if (isTooLong) params.onSilence()
  }
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    if (data.kind === 'beat') silence.heard(performance.now())
    else if (isLeader()) say('beat')
  }
  const timer = setInterval(tick, everyMs)
  const offReturn = onReturn(ask)
  ask()
  return {
    send: () => say('beat'),
    end() {
      offReturn()
      clearInterval(timer)
      channel.close()
    },
  }
}
