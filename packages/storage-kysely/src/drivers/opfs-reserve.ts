const NAME = '.durably-reserve-'
const PARTS = 3
/** Chromium hands out a whole MiB when the first byte of a file is written, and SQLite makes its journal anew each time. */
const PART_BYTES = 1.25 * 1024 * 1024

/**
 * Room that is taken while there is plenty. SQLite needs some even to delete, for its journal, and it is given to that when
 * nothing else is left: part by part, so that there is a next time. All databases of a site share it, as they share its
 * quota.
 */
export class Reserve {
  #isToBeFilled: boolean

  constructor(isKept: boolean) {
    this.#isToBeFilled = isKept
  }

  /** Makes what is missing of it. Without the room for it there is none, and nobody need know. */
  fill(): void {
    if (!this.#isToBeFilled) return
    this.#isToBeFilled = false
    void fillParts().catch(() => {})
  }

  /** Something was deleted: there may be room again. */
  refill(): void {
    this.#isToBeFilled = true
    this.fill()
  }

  /** Gives a part of it back to the site; false when none is left. */
  async give(): Promise<boolean> {
    try {
      const directory = await navigator.storage.getDirectory()
      for (const name of partNames()) {
        if (await removed(directory, name)) return true
      }
    } catch {}
    return false
  }
}

function partNames(): string[] {
  return Array.from({ length: PARTS }, (_, part) => NAME + part)
}

async function removed(directory: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  return directory.removeEntry(name).then(
    () => true,
    () => false,
  )
}

async function fillParts(): Promise<void> {
  const directory = await navigator.storage.getDirectory()
  for (const name of partNames()) {
    const part = await directory.getFileHandle(name, { create: true })
    if ((await part.getFile()).size >= PART_BYTES) continue
    try {
      await fillPart(part)
    } catch (error) {
      await removed(directory, name)
      throw error
    }
  }
}

async function fillPart(part: FileSystemFileHandle): Promise<void> {
  const writable = await part.createWritable()
  try {
    // As much again has to be left: what takes the last room would make the storage full itself.
    await writable.truncate(2 * PART_BYTES)
    await writable.truncate(0)
    await writable.write(new Uint8Array(PART_BYTES))
    await writable.close()
  } catch (error) {
    await writable.abort().catch(() => {})
    throw error
  }
}
