import PQueue from 'p-queue'

export const concurrency = { tasks: 16 }

export async function openTasks({ concurrency, body }) {
  const queue = new PQueue({ concurrency })
  return {
    durability: () => '-',
    enqueueMany: (payloads) => Promise.all(payloads.map((payload) => queue.add(() => body(payload)))),
    start: () => {},
  }
}
