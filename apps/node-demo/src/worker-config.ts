import { z } from 'zod'

/** What the parent tells a worker process: its one argument, as JSON. */
export const workerConfig = z.object({
  db: z.string(),
  folder: z.string(),
  witness: z.string(),
  workerId: z.string(),
  /** The worker that this one comes after, when the parent has seen it die. */
  dead: z.string().nullable(),
  /** Whether events and logs are stored. */
  history: z.boolean(),
})

export type WorkerConfig = z.output<typeof workerConfig>

/** Sent to the parent at the start of each step body. */
export const workerMessage = z.object({ runId: z.string(), stepName: z.string() })

export type WorkerMessage = z.output<typeof workerMessage>
