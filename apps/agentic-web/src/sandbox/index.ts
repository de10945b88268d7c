import type { ToolSource } from '../tools/tool'
import { createBashTool } from './bash-tool'
import { openSandbox } from './sandbox'

export { createBashTool } from './bash-tool'
export { SandboxUnavailable } from './bwrap'
export type { Limits } from './inside'
export { openSandbox, type Sandbox, type SandboxCall, type SandboxOptions, type SandboxResult } from './sandbox'
export type { User } from './user'
export type { Excess } from './watch'

/** The `bash` tool, where the machine can isolate it. */
export const createSandboxTools: ToolSource = async ({ sandboxUser: user }) => [
  createBashTool(await openSandbox({ ...(user !== null && { user }) })),
]
