import { FILES_FD } from './descriptors'

/**
 * What runs in the sandbox around the command, as `bash -c INSIDE sandbox COMMAND`: lays out the files that come on
 * standard input, runs the command with its limits, ends whatever it left running, and sends its exit code and the
 * files on a descriptor of their own. Whatever else was
 * open in the worker is closed first. The limits are set here, not outside: the kernel counts processes by user *and* name space, and
 * outside it would count the worker's own.
 */
export interface Limits {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly memoryBytes: number
  readonly processes: number
  readonly openFiles: number
  /** Of the files of the session, of those in /tmp, and of one file. */
  readonly diskBytes: number
  /** Folders and links count too. */
  readonly diskEntries: number
  readonly outputBytes: number
}

export const DEFAULT_LIMITS: Limits = {
  seconds: 30,
  cpuSeconds: 20,
  memoryBytes: 512 * 1024 * 1024,
  processes: 32,
  openFiles: 64,
  diskBytes: 16 * 1024 * 1024,
  diskEntries: 5_000,
  outputBytes: 1024 * 1024,
}

/** Standard output and error are one pipe of the sandbox's own, so that lines come in the order of their writing. */
export function insideScript(limits: Limits): string {
  const kibi = (bytes: number) => Math.floor(bytes / 1024)
  return `
exec 2>&1
for open in /proc/$$/fd/*; do
  case \${open##*/} in 0 | 1 | 2 | ${FILES_FD}) ;; *) eval "exec \${open##*/}>&-" ;; esac
done
tar -x -f - --no-same-owner --no-same-permissions || exit 125
exec 0</dev/null
ulimit -c 0 -l 0 -q 0 -t ${limits.cpuSeconds} -v ${kibi(limits.memoryBytes)} -f ${kibi(limits.diskBytes)}
ulimit -n ${limits.openFiles} -u ${limits.processes} || exit 125
exec 5> >(exec cat ${FILES_FD}>&-); out=$!
bash --noprofile --norc -c -- "$1" sandbox >&5 2>&1 ${FILES_FD}>&- 5>&-
code=$?
exec 5>&-
kill -STOP -1 2>/dev/null
for process in /proc/[0-9]*; do
  id=\${process#/proc/}
  case $id in 1 | $$ | $out) ;; *) kill -KILL $id 2>/dev/null ;; esac
done
kill -CONT $out 2>/dev/null
wait $out
printf '%s\\n' "$code" >&${FILES_FD}
exec tar -c -f - --format=gnu --hard-dereference --owner=0 --group=0 --mtime=@0 . >&${FILES_FD} 2>/dev/null
`
}
