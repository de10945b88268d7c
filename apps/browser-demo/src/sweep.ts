import type { Durably } from '@coji/durably'
import type { DemoFiles } from './demo-files'
import { folderOf, foldersInProgress } from './inputs'

/** Removes the files of runs that are gone, and of copies that a closed tab left unfinished. */
export async function sweep(durably: Durably, files: DemoFiles): Promise<void> {
  // In this order: a folder of the list is being filled, or its run is stored, or nobody will ask for it.
  const folders = await files.folders()
  if (folders.length === 0) return
  const wanted = new Set(await foldersInProgress())
  for (const { payload } of await durably.getRuns()) {
    const folder = folderOf(payload)
    if (folder !== null) wanted.add(folder)
  }
  for (const folder of folders) if (!wanted.has(folder)) await files.removeFolder(folder)
}
