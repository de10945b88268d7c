import { promise } from 'fastq'

export const concurrency = { tasks: 16 }

export async function openTasks({ concurrency, body }) {
  const queue = promise((payload) => body(payload), concurrency)
  return {
    durability: () => '-',
    enqueueMany: (payloads) => Promise.all(payloads.map((payload) => queue.push(payload))),
    start: () => {},
  }
}
