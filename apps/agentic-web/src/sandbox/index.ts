import type { ToolSource } from '../tools/tool'
import { createBashTool } from './bash-tool'
import { SandboxUnavailable, type User } from './bwrap'
import { openSandbox } from './sandbox'

export { createBashTool } from './bash-tool'
export { SandboxUnavailable, type User } from './bwrap'
export type { Limits } from './inside'
export { openSandbox, type Sandbox, type SandboxCall, type SandboxOptions, type SandboxResult } from './sandbox'
export type { Excess } from './watch'

/** The `bash` tool, where the machine can isolate it. `SANDBOX_USER` names a user for workers that run as root. */
export const createSandboxTools: ToolSource = async () => {
  const named = process.env['SANDBOX_USER']
  const user = named === undefined || named === '' ? undefined : readUser(named)
  return [createBashTool(await openSandbox({ ...(user && { user }) }))]
}

export function readUser(named: string): User {
  const [, uid, gid] = /^(\d{1,9}):(\d{1,9})$/.exec(named) ?? []
  if (uid === undefined || gid === undefined) {
    throw new SandboxUnavailable(`SANDBOX_USER must be two numbers, user:group, such as 65534:65534; it is ${named}.`)
  }
  return { uid: Number(uid), gid: Number(gid) }
}
