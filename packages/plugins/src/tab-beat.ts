import { createSilence } from './tab-silence'
import { compareVersions, type TabVersion } from './tab-version'
import { isVisible, onReturn } from './tab-visibility'

/** What the leader tells of itself. */
export interface Leading {
  readonly version: TabVersion | undefined
  /** Jobs with due runs that it does not know. */
  readonly lacks: readonly string[]
}

/** A tab that could lead better. */
export interface Offer {
  readonly tab: string
  readonly version: TabVersion | undefined
  /** Those of the jobs that the leader lacks. */
  readonly knows: readonly string[]
}

/** What tabs tell each other about who leads. */
type Word =
  | ({ readonly kind: 'beat' } & Leading)
  | { readonly kind: 'ask' }
  | ({ readonly kind: 'offer' } & Offer)
  | { readonly kind: 'take'; readonly tab: string }

export interface BeatParams {
  readonly channelName: string
  /** Names this tab. */
  readonly tab: string
  readonly version: TabVersion | undefined
  readonly everyMs: number
  /** So much silence, heard by a tab that was awake and visible all the while, means that the leader is frozen. */
  readonly silenceMs: number
  readonly isLeader: () => boolean
  readonly knows: (jobName: string) => boolean
  /** While leading. */
  readonly lacks: () => readonly string[]
  /** While leading: another beat was sent. */
  readonly onBeat: () => void
  /** While another tab leads: what it says. */
  readonly onFollow: (leading: Leading) => void
  /** While leading: somebody is newer, or knows what is lacking. */
  readonly onOffer: (offer: Offer) => void
  /** The leader has stopped its worker and wants this tab to lead. */
  readonly onTake: () => void
  readonly onSilence: () => void
}

/** What a follower knows of the leader. */
export interface Heard {
  /** What it said last; `null` when it never said anything. */
  readonly leading: Leading | null
  readonly silentMs: number
}

export interface Beat {
  /** Tells the others at once that there is a leader. */
  send(): void
  /** Lets another tab take the lock. */
  handTo(tab: string): void
  heard(): Heard
  end(): void
}

/** The leader's beats, and the others listening for them. */
export function startBeat(params: BeatParams): Beat {
  const { everyMs, silenceMs, isLeader, tab, version } = params
  const channel = new BroadcastChannel(params.channelName)
  const say = (word: Word) => channel.postMessage(word)
  const send = () => say({ kind: 'beat', version, lacks: params.lacks() })
  const ask = () => {
    if (!isLeader()) say({ kind: 'ask' })
  }
  const silence = createSilence({ tickMs: everyMs, limitMs: silenceMs, startedAt: performance.now() })
  let leading: Leading | null = null
  let heardAt = performance.now()
  const tick = () => {
    const isTooLong = silence.tick(performance.now(), !isLeader() && isVisible())
    if (isLeader()) {
      silence.heard(performance.now())
      send()
      params.onBeat()
    } else if (isTooLong) params.onSilence()
  }
  const follow = (leader: Leading) => {
    heardAt = performance.now()
    silence.heard(heardAt)
    leading = leader
    if (isLeader()) return
    params.onFollow(leader)
    const knows = leader.lacks.filter(params.knows)
    if (compareVersions(version, leader.version) > 0 || knows.length > 0) say({ kind: 'offer', tab, version, knows })
  }
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    if (data.kind === 'beat') follow(data)
    else if (data.kind === 'take') {
      if (data.tab === tab) params.onTake()
    } else if (!isLeader()) return
    else if (data.kind === 'offer') params.onOffer(data)
    else send()
  }
  const timer = setInterval(tick, everyMs)
  const offReturn = onReturn(ask)
  ask()
  return {
    send,
    handTo: (heir) => say({ kind: 'take', tab: heir }),
    heard: () => ({ leading, silentMs: performance.now() - heardAt }),
    end() {
      offReturn()
      clearInterval(timer)
      channel.close()
    },
  }
}
