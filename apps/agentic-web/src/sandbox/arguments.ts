import { SECCOMP_FD, STATUS_FD } from './descriptors'
import { insideScript, type Limits } from './inside'

/** A private name for the sandbox, whoever runs it outside. */
const NOBODY = '65534'

const ENVIRONMENT = {
  PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
  // Not the session: no program must take for its configuration what an earlier call left there.
  HOME: '/tmp',
  TMPDIR: '/tmp',
  LANG: 'C.UTF-8',
  TERM: 'dumb',
} as const

/** Links of an ordinary system where /bin and /lib are in /usr; what a machine lacks is not made. */
const LINKS = ['bin', 'sbin', 'lib', 'lib32', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])

/** Of /etc just what programs need to be found and loaded. */
const SYSTEM = ['/etc/alternatives', '/etc/ld.so.cache'].flatMap((path) => ['--ro-bind-try', path, path])

const FOLDER_BYTES = 65_536

/** What comes after `bwrap`. The command is one argument of its own, after `--`: nothing in it is an option. */
export function bwrapArguments(command: string, limits: Limits): string[] {
  const disk = String(limits.diskBytes)
  return [
    ...['--unshare-all', '--unshare-user', '--disable-userns', '--assert-userns-disabled'],
    ...['--uid', NOBODY, '--gid', NOBODY, '--hostname', 'sandbox', '--cap-drop', 'ALL'],
    ...['--new-session', '--die-with-parent', '--clearenv'],
    ...Object.entries(ENVIRONMENT).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--ro-bind', '/usr', '/usr', '--size', String(FOLDER_BYTES), '--tmpfs', '/usr/local', ...LINKS, ...SYSTEM],
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(FOLDER_BYTES), '--tmpfs', '/dev/shm'],
    ...['--size', disk, '--tmpfs', '/tmp', '--size', disk, '--tmpfs', '/session', '--chdir', '/session'],
    // What is left of / and /dev, and what could be written to it, has no size of its own.
    ...['--remount-ro', '/usr/local', '--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--seccomp', String(SECCOMP_FD), '--json-status-fd', String(STATUS_FD)],
    ...['--', '/usr/bin/bash', '--noprofile', '--norc', '-c', insideScript(limits), 'sandbox', command],
  ]
}
