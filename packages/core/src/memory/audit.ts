import type { AuditNote, AuditQuery, AuditRecord, AuditStorage, SettingsStorage } from '../port'
import type { Json } from '../base'
import type { Operations } from './cluster'
import type { Clock } from './clock'
import type { Memory } from './memory'

type Done = Pick<AuditRecord, 'tenant' | 'targetKind' | 'target'> & {
  readonly before: object | null
  readonly after: object | null
}

/** What operators did, oldest first. */
export class Audit {
  #records: AuditRecord[] = []
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add({ id, actor, action }: AuditNote, { tenant, targetKind, target, before, after }: Done): void {
    const at = this.#clock.now()
    const [was, is] = [textOf(before), textOf(after)]
    this.#records.push(Object.freeze({ id, actor, action, at, tenant, targetKind, target, before: was, after: is }))
  }

  list({ limit, cursor, ...conditions }: AuditQuery): readonly AuditRecord[] {
    const found = this.#records.filter((record) => {
      const isNext = cursor === undefined || isBefore(record, cursor)
      return isNext && CONDITIONS.every((name) => (conditions[name] ?? record[name]) === record[name])
    })
    return found.sort((a, b) => (isBefore(a, b) ? 1 : -1)).slice(0, limit)
  }

  purge(until: string, limit: number): number {
    const old = new Set(this.#records.filter(({ at }) => at < until).slice(0, limit))
    this.#records = this.#records.filter((record) => !old.has(record))
    return old.size
  }
}

const CONDITIONS = ['tenant', 'actor', 'action', 'target'] as const

function isBefore(one: Pick<AuditRecord, 'at' | 'id'>, other: Pick<AuditRecord, 'at' | 'id'>): boolean {
  return one.at === other.at ? one.id < other.id : one.at < other.at
}

function textOf(view: object | null): Json | null {
  return view === null ? null : JSON.stringify(view)
}

export function createAudit({ audit, clock }: Memory, { read, write }: Operations): AuditStorage {
  return {
    list: (query) => read(() => audit.list(query)),
    purge: ({ olderThanMs, limit }) => write(() => audit.purge(clock.in(-olderThanMs), limit)),
  }
}

export function createSettings({ audit }: Memory, { read, write }: Operations): SettingsStorage {
  const values = new Map<string, Json>()
  const partOf = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => (values.has(name) ? [[name, JSON.parse(values.get(name) ?? '')]] : [])))
  return {
    get: () => read(() => Object.fromEntries(values)),
    set: (changes, note) =>
      write(() => {
        const before = partOf(Object.keys(changes))
        for (const [name, value] of Object.entries(changes)) {
          if (value === null) values.delete(name)
          else values.set(name, value)
        }
        const after = partOf(Object.keys(changes))
        if (note !== undefined) audit.add(note, { tenant: '', targetKind: 'settings', target: '', before, after })
        return Object.fromEntries(values)
      }),
  }
}
