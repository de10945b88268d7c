import { createServer } from 'node:http'
import { once } from 'node:events'
import type { Durably } from '@coji/durably'
import { type AgentParts, defineAgent } from '../agent/agent-job'
import { createModelChoice } from '../agent/choose-model'
import { createDemoModel } from '../agent/models/demo'
import { createOpenAiModel } from '../agent/models/openai'
import type { WorkerConfig } from '../config'
import { openDatabase } from '../database/open'
import { type Log, logRuns } from '../log'
import { createSandboxTools } from '../sandbox'
import { startTelemetry } from '../telemetry/telemetry'
import { plainTools } from '../tools'
import type { AnyTool } from '../tools/tool'
import { lookAfter } from './housekeeping'

/** A process that executes runs. */
export interface RunningWorker {
  readonly workerId: string
  stop(): Promise<void>
}

const BEATS_PER_LEASE = 6

/** What tests put in the place of the real parts. */
export interface WorkerParts {
  readonly tools?: readonly AnyTool[]
  readonly modelOf?: AgentParts['modelOf']
}

export async function startWorker(config: WorkerConfig, log: Log, parts: WorkerParts = {}): Promise<RunningWorker> {
  const { concurrency, workerId, leaseMs } = config
  const tools = [...plainTools(config), ...(await sandboxTools(config)), ...(parts.tools ?? [])]
  const telemetry = await startTelemetry(config, { service: 'worker', log })
  const heartbeatInterval = Math.floor(leaseMs / BEATS_PER_LEASE)
  const database = await openDatabase(config, { concurrency, workerId, staleThreshold: leaseMs, heartbeatInterval })
  const { durably, db } = database
  if (telemetry !== null) durably.use(telemetry.plugin)
  const models = { demo: createDemoModel({ wordMs: config.demoWordMs }), openAiCompatible: createOpenAiModel(config) }
  const modelOf = parts.modelOf ?? createModelChoice(database, models, config)
  durably.register({ agent: defineAgent({ db, tools, modelOf }) })
  logRuns(durably, log)
  const stopLooking = await lookAfter({ db, durably, tools, config, log })
  // Who started this process has seen that one die: nobody has to wait for its leases to run out.
  if (config.deadWorkerId !== undefined) await durably.recover({ workerId: config.deadWorkerId })
  durably.start()
  const endHealth = await answerForHealth(config, () => durably.health())
  return {
    workerId: durably.health().workerId,
    /** What is not done in time is given back, and another worker goes on with it at once. */
    async stop() {
      stopLooking()
      await durably.stop({ timeout: config.drainMs })
      endHealth?.()
      await database.close()
      await telemetry?.stop()
    },
  }
}

/** Where a machine cannot isolate them there is no worker, rather than one without isolation. */
async function sandboxTools(config: WorkerConfig): Promise<readonly AnyTool[]> {
  return config.sandbox === 'off' ? [] : createSandboxTools(config)
}

type Health = ReturnType<Durably['health']>

/** A worker that stops takes nothing more: who asks is told so before it is gone. */
async function answerForHealth({ healthPort }: WorkerConfig, health: () => Health) {
  if (healthPort === null) return null
  const server = createServer((_request, response) => {
    const { worker, active, trouble } = health()
    const status = worker === 'running' && trouble === null ? 200 : 503
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ worker, active: active.length, trouble: trouble !== null }))
  }).listen(healthPort)
  await once(server, 'listening')
  return () => {
    server.close()
    server.closeAllConnections()
  }
}
