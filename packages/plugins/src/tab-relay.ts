import type { Durably, DurablyEvent, EventInput, EventType } from '@coji/durably-core'

/** Which events concern the other tabs. What a worker says of itself stays in its tab. */
const RELAYED: Readonly<Record<EventType, boolean>> = {
  'run:trigger': true,
  'run:deduplicated': true,
  'run:start': true,
  'run:complete': true,
  'run:fail': true,
  'run:timeout': true,
  'run:cancel': true,
  'run:retry': true,
  'run:suspend': true,
  'run:signal': true,
  'run:park': true,
  'run:unpark': true,
  'run:release': true,
  'run:recover': true,
  'run:progress': true,
  'run:delete': true,
  'run:assign': true,
  'run:orphan': true,
  'step:start': true,
  'step:complete': true,
  'step:fail': true,
  'step:chunk': true,
  'step:restart': true,
  'step:unawaited': true,
  'log:write': true,
  'job:unknown': false,
  'inbox:published': true,
  'inbox:delivered': true,
  'inbox:unwanted': true,
  'inbox:refused': true,
  'schedule:fired': true,
  'schedule:missed': true,
  'worker:error': false,
  'worker:lease-lost': false,
}

const RELAYED_TYPES = (Object.keys(RELAYED) as EventType[]).filter((type) => RELAYED[type])

/** On an event that came from another tab. A symbol, because the emitter copies it and nobody else sees it. */
const FOREIGN = Symbol('of another tab')

/** Whether the event happened in another tab. */
export function isForeign(event: DurablyEvent): boolean {
  return FOREIGN in event
}

/** Lets every tab hear the events of all of them. Returns how to end it. */
export function relayEvents(durably: Durably, channelName: string): () => void {
  const channel = new BroadcastChannel(channelName)
  const relay = (event: DurablyEvent) => {
    if (!isForeign(event)) post(channel, event)
  }
  const offs = RELAYED_TYPES.map((type) => durably.on(type, relay))
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (!isRelayed(data)) return
    durably.emit(Object.assign(data, { [FOREIGN]: true }))
    // The worker hears of the wish with its next renewal.
    if (data.type === 'run:cancel' && data.requested) durably.wake()
  }
  return () => {
    for (const off of offs) off()
    channel.close()
  }
}

/** Another version of the application may run in the other tab. */
function isRelayed(data: unknown): data is EventInput {
  return typeof data === 'object' && data !== null && 'type' in data && RELAYED[data.type as EventType] === true
}

/** What cannot be cloned stays behind; which run and which step can always be told. */
function post(channel: BroadcastChannel, event: DurablyEvent): void {
  try {
    channel.postMessage(event)
  } catch {
    const plain = Object.entries(event).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
    channel.postMessage(Object.fromEntries(plain))
  }
}
