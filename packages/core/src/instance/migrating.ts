/** Lets those wait who need tables that are being made. */
export class Migrating {
  #underWay: Promise<unknown> | null = null

  /** Settles, and never rejects, when nobody migrates any more; `null` when nobody does. */
  get underWay(): Promise<unknown> | null {
    return this.#underWay
  }

  run(migrate: () => Promise<void>): Promise<void> {
    const work = migrate()
    const settled = Promise.allSettled([work, this.#underWay]).then(() => {
      if (this.#underWay === settled) this.#underWay = null
    })
    this.#underWay = settled
    return work
  }
}
