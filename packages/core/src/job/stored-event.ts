import type { EventInput, EventType } from './events'
import type { EventRecord, RunRecord } from '../port'
import { decodeValue } from '../base'

/** An event as the history has it, discriminated by `type`: without `sequence`, which is a process's own. */
export type StoredEvent<T extends EventType = EventType> = {
  [Type in T]: EventInput<Type> & {
    readonly runId: string
    readonly jobName: string
    /** By the clock of the storage. */
    readonly timestamp: string
    /** The event's number in the history of its run, from 1. */
    readonly seq: number
  }
}[T]

/** The payload of a run is stored once, on the run. */
export function toStoredEvent(
  { type, payload, seq, createdAt }: EventRecord,
  run: Pick<RunRecord, 'id' | 'jobName' | 'payload'>,
): StoredEvent {
  const own = decodeValue(payload) as object
  const withPayload = type === 'run:start' || type === 'run:trigger' ? { payload: decodeValue(run.payload) } : {}
  const fields = { type, runId: run.id, jobName: run.jobName, ...withPayload, ...own, seq, timestamp: createdAt }
  return fields as unknown as StoredEvent
}
