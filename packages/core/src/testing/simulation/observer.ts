import type { RunRecord, Storage } from '../../port'
import type { Model } from './model'
import { instant, type ModelRun, stepText, textsOf } from './model-run'
import { must, mustEqual } from './violation'

/** Compares everything the storage shows with the model, after each call. */
export async function observe(storage: Storage, model: Model): Promise<void> {
  const records = await storage.getRuns({})
  mustEqual(records.length, model.runs.size, 'number of runs')
  for (const record of records) {
    const run = model.runs.get(record.id)
    if (run === undefined) return must(false, () => `run ${record.id} exists, and nobody made it`)
    const wasTouched = model.touched.has(run)
    if (!wasTouched && record.version === run.version) continue
    must(wasTouched, () => `run ${record.id} changed to version ${record.version}, and nobody changed it`)
    must(record.version > run.version, () => `run ${record.id} changed, its version did not (${record.version})`)
    run.version = record.version
    // Whether a child that ended in the same write as its parent woke it first is for the storage to decide.
    if (run.finishedAt !== null) run.wakes = record.wakes
    compareRun(record, run)
    await compareRows(storage, run)
  }
  model.touched.clear()
}

export function compareRun(record: RunRecord, run: ModelRun): void {
  const isRunning = run.status === 'running'
  const found: (string | number)[] = [
    record.status,
    record.attempt,
    record.attemptBase,
    record.crashCount,
    record.leaseEpoch,
  ]
  found.push(record.ownerId ?? '-', record.claimToken ?? '-', record.leaseUntil ?? '-', record.commitNo)
  found.push(String(record.cancelRequestedAt !== null), record.concurrencySlot ?? '-', record.lastEventSequence)
  found.push(record.output ?? '-', record.error ?? '-', record.deadlineAt ?? '-', record.finishedAt ?? '-')
  found.push(record.currentStepIndex, JSON.stringify(record.progress), record.waitingFor?.kind ?? '-', record.wakes)
  const expected: (string | number)[] = [run.status, run.attempt, run.attemptBase, run.crashes, run.epoch]
  expected.push(run.owner ?? '-', isRunning ? run.token : '-', instant(run.leaseUntil) ?? '-', run.commitNo)
  expected.push(String(run.cancelAsked), run.slot ?? '-', run.events.length)
  expected.push(run.output ?? '-', run.error ?? '-', instant(run.deadlineAt) ?? '-', instant(run.finishedAt) ?? '-')
  expected.push(run.stepIndex, run.progress ?? 'null', run.waitingFor ?? '-', run.wakes)
  expected.push(run.wanted.parentRunId ?? '-', [...run.alsoAwaitedBy].sort().join())
  found.push(record.parentRunId ?? '-', [...record.alsoAwaitedBy].sort().join())
  mustEqual(found, expected, `run ${record.id}`)
  if (run.status === 'pending')
    mustEqual(record.availableAt ?? '-', instant(run.availableAt) ?? '-', `availableAt of ${record.id}`)
}

async function compareRows(storage: Storage, run: ModelRun): Promise<void> {
  const { id } = run.wanted
  const steps = (await storage.getSteps(id)).map((step) => stepText(step, step.dueAt))
  const expected = [...run.liveSteps.values(), ...run.failedSteps].map((step) => stepText(step, instant(step.dueAt)))
  mustEqual(steps.sort(), expected.sort(), `steps of ${id}`)
  if (storage.events !== undefined) {
    const events = (await storage.events.getEvents(id, {})).map((event) => `${event.seq} ${textsOf([event])}`)
    const listed = run.events.map((text, index) => `${index + 1} ${text}`)
    mustEqual(events, listed, `events of ${id}`)
  }
  if (storage.logs !== undefined) mustEqual((await storage.logs.getLogs(id, {})).length, run.logs, `logs of ${id}`)
  if (storage.signals !== undefined) {
    const unread = (await storage.signals.getUnread(id)).map(({ position, name, payload }) => [position, name, payload])
    const kept = run.unread.map(({ position, name, payload }) => [position, name, payload])
    mustEqual(unread, kept, `unread signals of ${id}`)
  }
}
