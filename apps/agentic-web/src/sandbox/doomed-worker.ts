import { openSandbox } from './index'

/** For tests: runs the command of its environment, as who root names for that, until it is killed. */
const user = { uid: 65_534, gid: 65_534 }
const sandbox = await openSandbox(process.getuid?.() === 0 ? { user } : {})
await sandbox.run({ command: process.env['COMMAND'] ?? '', files: [] })
