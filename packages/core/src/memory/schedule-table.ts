import type { ScheduleKey, ScheduleRecord } from '../port'

/** The schedules, each under its id and its name. Records are replaced, never written to. */
export class ScheduleTable {
  readonly #byId = new Map<string, ScheduleRecord>()
  readonly #idByName = new Map<string, string>()

  find(id: string): ScheduleRecord | undefined {
    return this.#byId.get(id)
  }

  findByName(key: ScheduleKey): ScheduleRecord | undefined {
    return this.#byId.get(this.#idByName.get(nameOf(key)) ?? '')
  }

  all(): readonly ScheduleRecord[] {
    return [...this.#byId.values()]
  }

  put(record: ScheduleRecord): ScheduleRecord {
    const frozen = Object.freeze({ ...record })
    this.#byId.set(frozen.id, frozen)
    this.#idByName.set(nameOf(frozen), frozen.id)
    return frozen
  }

  remove(record: ScheduleRecord): void {
    this.#byId.delete(record.id)
    this.#idByName.delete(nameOf(record))
  }
}

function nameOf({ tenant, name }: ScheduleKey): string {
  return JSON.stringify([tenant, name])
}
