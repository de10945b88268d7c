import {
  type Children,
  type ChildRun,
  type ChildRuns,
  type JobContext,
  type RunStepOptions,
  type StepBody,
  type StepTools,
  type StreamBody,
  type StreamOptions,
  type TransactionBody,
  type TransactionOptions,
  triesOf,
  type WaitAllOptions,
} from '../job'
import { type CtxCall, orRefused } from './call'
import { InvalidOptionError, toInstant, toLogData, toLogText } from '../base'
import type { Pass } from './open-calls'
import type { NewLog, Progress } from '../port'
import { runStep } from './run'
import type { StepScope } from './scope'
import { streamStep } from './stream'
import { transactionStep } from './transaction'
import { triggerStep } from './trigger'
import { triggerAllStep } from './trigger-all'
import { sleepStep, waitForChild, waitForStep } from './wait'
import { waitForChildren } from './wait-all'

type WithBody<Options, Body> = [Body] | [Options, Body]

export function createContext(scope: StepScope, pass: Pass): JobContext {
  const { run } = scope
  function callRun<T>(name: string, ...rest: WithBody<RunStepOptions, StepBody<T>>): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: callRun }, ({ calledAt }) => {
      const { options, body } = bodyOf('ctx.run', name, rest)
      const withTools = (_call: unknown, tools: StepTools) => body(tools)
      return runStep({ scope, pass, name, calledAt, kind: 'run', options, body: withTools })
    })
  }
  function callTransaction<T>(
    name: string,
    ...rest: WithBody<TransactionOptions, TransactionBody<T, never>>
  ): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: callTransaction }, (call) =>
      transactionStep({ ...call, ...bodyOf('ctx.transaction', name, rest) }),
    )
  }
  function callStream<T>(name: string, ...rest: WithBody<StreamOptions, StreamBody<T>>): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: callStream }, (call) =>
      streamStep({ ...call, ...bodyOf('ctx.stream', name, rest) }),
    )
  }
  const waits = createWaits(scope, pass)
  return {
    runId: run.id,
    jobName: run.jobName,
    scheduledFor: run.scheduledFor,
    attempt: run.attempt,
    tries: triesOf(run, true),
    get signal() {
      return scope.interruption.signal
    },
    get log() {
      const body = scope.engine.bodyScope.current()
      return scope.logFor(body?.scope === scope ? body.stepName : null)
    },
    run: callRun,
    transaction: callTransaction,
    stream: callStream,
    sleep: waits.sleep,
    waitFor: waits.waitFor,
    trigger: waits.trigger,
    wait: waits.wait,
    triggerAll: waits.triggerAll,
    waitAll: waits.waitAll,
    progress: scope.progress,
  }
}

const NO_OPTIONS = Object.freeze({})

function bodyOf<Options extends object, Body>(call: string, name: string, rest: WithBody<Options, Body>) {
  const [options, body] = rest.length === 1 ? [NO_OPTIONS as Options, rest[0]] : rest
  if (typeof body !== 'function') {
    throw new InvalidOptionError(`${call}("${name}") needs a function as its last argument.`)
  }
  return { options, body }
}

type Waits = Pick<JobContext, 'sleep' | 'waitFor' | 'trigger' | 'wait' | 'triggerAll' | 'waitAll'>

function createWaits(scope: StepScope, pass: Pass): Waits {
  function call<T>(of: keyof Waits, name: string, begin: (call: CtxCall) => Promise<T>): Promise<T> {
    return orRefused({ scope, pass, name, calledAt: waits[of] }, begin)
  }
  const waits: Waits = {
    sleep: (name, until) => call('sleep', name, (own) => sleepStep(own, until)),
    waitFor: (name, options = {}) => call('waitFor', name, (own) => waitForStep(own, options)),
    trigger: (name, job, ...[payload, options = {}]) =>
      call('trigger', name, (own) => triggerStep({ call: own, job, payload, options })) as Promise<ChildRun<never>>,
    wait: (name, run) => call('wait', name, (own) => waitForChild(own, run)),
    triggerAll: (name, job, ...[payloads, options = {}]) =>
      call('triggerAll', name, (own) => triggerAllStep({ call: own, job, payloads, options })) as Promise<
        ChildRuns<never>
      >,
    waitAll: (name: string, children: Children, options: WaitAllOptions = {}) =>
      call('waitAll', name, (own) => waitForChildren<never>(own, children, options)),
  }
  return waits
}

/** Keeps the last progress of a run, so that a call may leave out what stays the same. */
export function createProgress(scope: Pick<StepScope, 'engine' | 'run' | 'writer'>): StepScope['progress'] {
  const { engine, run, writer } = scope
  let last: Progress | null = run.progress
  return (current, total, message) => {
    if (!Number.isFinite(current) || (total !== undefined && !Number.isFinite(total))) {
      throw new InvalidOptionError(`ctx.progress(${current}, ${total}): both must be finite numbers.`)
    }
    const next = {
      ...last,
      current,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message: toLogText(message) }),
    }
    last = next
    const event = { type: 'run:progress', runId: run.id, jobName: run.jobName, progress: next } as const
    writer.progress(next, event)
    engine.events.emit(event)
  }
}

export function createLogs(
  scope: Pick<StepScope, 'engine' | 'run'> & { readonly writer: Pick<StepScope['writer'], 'log'> },
): StepScope['logFor'] {
  const { engine, run, writer } = scope
  const { environment } = engine
  function write({ data: given, ...line }: Pick<NewLog, 'stepName' | 'level' | 'message'> & { data: unknown }): void {
    const data = toLogData(given)
    const event = { type: 'log:write', runId: run.id, ...line, data } as const
    engine.events.emit(event)
    if (!engine.plugins.recordsLogs()) return
    const log = {
      ...line,
      id: environment.createId(),
      data: data === undefined ? null : JSON.stringify(data),
      timestamp: toInstant(environment.clock.now()),
    }
    writer.log(log, event)
  }
  return (stepName) => ({
    info: (message, data) => write({ stepName, level: 'info', message: toLogText(message), data }),
    warn: (message, data) => write({ stepName, level: 'warn', message: toLogText(message), data }),
    error: (message, data) => write({ stepName, level: 'error', message: toLogText(message), data }),
  })
}
