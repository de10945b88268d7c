/** Which descriptor is what, in the process that becomes bwrap: 0 to 2 as always. */
export const SECCOMP_FD = 3
export const FILES_FD = 4
export const STATUS_FD = 5
