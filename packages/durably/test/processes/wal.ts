import { readFileSync } from 'node:fs'

const FILE_HEADER = 32
const FRAME_HEADER = 24

/** How many transactions the write-ahead log holds: the last frame of each carries the size of the database after it. */
export function countLoggedCommits(file: string): number {
  const log = readFileSync(`${file}-wal`)
  const frame = FRAME_HEADER + log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let commits = 0
  for (let start = FILE_HEADER; start + frame <= log.length; start += frame) {
    // What follows is left over from before the last checkpoint.
    if (!log.subarray(start + 8, start + 16).equals(salt)) break
    if (log.readUInt32BE(start + 4) !== 0) commits += 1
  }
  return commits
}
