import type { MessageRecord, Subscription } from '../port'

/** The messages in the order of their arrival, and who wants which. Records are replaced, never written to. */
export class MessageTable {
  subscriptions: readonly Subscription[] = []
  readonly #byId = new Map<string, MessageRecord>()
  readonly #idByKey = new Map<string, string>()
  readonly #waiting = new Set<string>()

  find(id: string): MessageRecord | undefined {
    return this.#byId.get(id)
  }

  findByKey(message: KeyedMessage): MessageRecord | undefined {
    return message.dedupeKey === null ? undefined : this.find(this.#idByKey.get(keyOf(message)) ?? '')
  }

  all(): readonly MessageRecord[] {
    return [...this.#byId.values()]
  }

  waiting(): readonly MessageRecord[] {
    return [...this.#waiting].flatMap((id) => this.find(id) ?? [])
  }

  put(record: MessageRecord): MessageRecord {
    const frozen = Object.freeze({ ...record })
    this.#byId.set(frozen.id, frozen)
    if (frozen.dedupeKey !== null) this.#idByKey.set(keyOf(frozen), frozen.id)
    if (frozen.processedAt === null) this.#waiting.add(frozen.id)
    else this.#waiting.delete(frozen.id)
    return frozen
  }

  remove(record: MessageRecord): void {
    this.#byId.delete(record.id)
    this.#waiting.delete(record.id)
    if (record.dedupeKey !== null) this.#idByKey.delete(keyOf(record))
  }
}

type KeyedMessage = Pick<MessageRecord, 'tenant' | 'dedupeKey'>

function keyOf({ tenant, dedupeKey }: KeyedMessage): string {
  return JSON.stringify([tenant, dedupeKey])
}
