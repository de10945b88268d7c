/** Whom the sandbox runs as. */
export interface User {
  readonly uid: number
  readonly gid: number
}
