/** The folders of a file and its own name, as SQLite makes them of its path: those of a URL. */
export function opfsNames(file: string): string[] {
  return new URL(file, 'file://opfs/').pathname.split('/').filter((name) => name !== '')
}

/** One text for one file. */
export function opfsPath(file: string): string {
  return opfsNames(file).join('/')
}
