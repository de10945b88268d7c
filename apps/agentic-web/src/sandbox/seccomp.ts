/** What a process in the sandbox may not ask of the kernel, as the filter that `bwrap --seccomp` loads. */

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const errno = (code: number) => 0x00050000 | code

interface Machine {
  /** AUDIT_ARCH_*: programs for another one (32 bits on a 64-bit kernel) have other numbers, and are ended. */
  readonly audit: number
  readonly ioctl: number
  readonly clone: number
  readonly socket: number
  readonly denied: readonly number[]
}

/** Since Linux 5.1 a call has one number on every machine: io_uring, the new mount calls, pidfd_getfd, memfd_secret. */
const DENIED_EVERYWHERE = [425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 447, 448]
const CLONE3 = 435

/**
 * Of both machines in the same order: ptrace, process_vm_readv and writev, kcmp; mount, umount2, pivot_root, chroot,
 * unshare, setns; keys; perf, bpf, userfaultfd, fanotify_init; file handles; modules, kexec, reboot, swap, acct,
 * quotactl, syslog, host names, clocks; memory that no process has to answer for: memfd_create, SysV and POSIX queues,
 * shared memory, semaphores; the placement of memory; personality.
 */
const MACHINES: Readonly<Record<string, Machine>> = {
  x64: {
    audit: 0xc000003e,
    ioctl: 16,
    clone: 56,
    socket: 41,
    denied: [
      101, 310, 311, 312, 165, 166, 155, 161, 272, 308, 248, 249, 250, 298, 321, 323, 300, 303, 304, 175, 176, 313, 246,
      320, 169, 167, 168, 163, 179, 103, 170, 171, 159, 164, 305, 319, 29, 30, 31, 64, 68, 240, 237, 238, 256, 279, 135,
      // Of this machine only: modify_ldt, sysctl, iopl, ioperm, uselib, ustat, sysfs, nfsservctl, lookup_dcookie.
      154, 156, 172, 173, 134, 136, 139, 180, 212,
    ],
  },
  arm64: {
    audit: 0xc00000b7,
    ioctl: 29,
    clone: 220,
    socket: 198,
    denied: [
      117, 270, 271, 272, 40, 39, 41, 51, 97, 268, 217, 218, 219, 241, 280, 282, 262, 264, 265, 105, 106, 273, 104, 294,
      142, 224, 225, 89, 60, 116, 161, 162, 171, 170, 266, 279, 194, 195, 196, 190, 186, 180, 235, 237, 238, 239, 92,
      18,
    ],
  },
}

/** The 32-bit way into a 64-bit kernel has numbers from here on. */
const X32 = 0x40000000
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
/** Every CLONE_NEW*: no name space in the sandbox has another one inside. */
const NEW_NAMESPACES = 0x7e020000
const AF_UNIX = 1

const NUMBER = 0
const ARCHITECTURE = 4
/** The lower half of an argument: the kernel looks at no more of these, so the filter must not either. */
const argument = (index: number) => 16 + 8 * index

const load = (offset: number): Instruction => [0x20, 0, 0, offset]
const answer = (value: number): Instruction => [0x06, 0, 0, value]
const unlessEqual = (value: number, skip: number): Instruction => [0x15, 0, skip, value]
const unlessAtLeast = (value: number, skip: number): Instruction => [0x35, 0, skip, value]
const unlessAnyOf = (bits: number, skip: number): Instruction => [0x45, 0, skip, bits]

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number]

export function seccompFilter(arch: string = process.arch): Uint8Array {
  const machine = MACHINES[arch]
  if (machine === undefined) throw new Error(`The sandbox knows no system calls of ${arch}: it runs on x64 and arm64.`)
  return assemble([
    load(ARCHITECTURE),
    ...[unlessEqual(machine.audit, 1), [0x05, 0, 0, 1] as const, answer(KILL)],
    load(NUMBER),
    ...(arch === 'x64' ? [unlessAtLeast(X32, 1), answer(errno(EPERM))] : []),
    ...[...machine.denied, ...DENIED_EVERYWHERE].flatMap((call) => [unlessEqual(call, 1), answer(errno(EPERM))]),
    // Its flags are in memory, where no filter can look. Programs then use clone.
    ...[unlessEqual(CLONE3, 1), answer(errno(ENOSYS))],
    ...[unlessEqual(machine.clone, 3), load(argument(0)), unlessAnyOf(NEW_NAMESPACES, 1), answer(errno(EPERM))],
    load(NUMBER),
    ...[unlessEqual(machine.socket, 4), load(argument(0)), unlessEqual(AF_UNIX, 1), answer(ALLOW)],
    answer(errno(EAFNOSUPPORT)),
    ...[unlessEqual(machine.ioctl, 5), load(argument(1))],
    ...[TIOCSTI, TIOCLINUX].flatMap((request) => [unlessEqual(request, 1), answer(errno(EPERM))]),
    answer(ALLOW),
  ])
}

function assemble(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8)
  for (const [index, [code, whenTrue, whenFalse, value]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(whenTrue, index * 8 + 2)
    bytes.writeUInt8(whenFalse, index * 8 + 3)
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4)
  }
  return bytes
}
