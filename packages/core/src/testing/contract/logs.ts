import { assertEqual, itemAt } from '../assert'
import { newId, newLog, outcomeOf, stepWrite } from './builders'
import { casesOf } from './contract-case'

export const LOG_CASES = casesOf('logs', 'logs', {
  'a log shows what was written': async (kit) => {
    const holder = await kit.start()
    const log = newLog({
      stepName: 'charge "card"',
      level: 'warn',
      message: 'careful: ü \\ "quoted"\nnext line',
      data: '{ "text":"\\u0000 \\ud800" ,"n":1.0}',
    })
    await holder.commit({ logs: [log] })
    assertEqual(await kit.logs.getLogs(holder.id, {}), [{ ...log, runId: holder.id }], 'logs')
  },

  'logs come in the order of writing, whatever their ids and times': async (kit) => {
    const holder = await kit.start()
    const late = newLog({ message: 'late', timestamp: '2026-05-01T00:00:00.000Z' })
    const ids = [newId(), newId()]
    const first = newLog({ id: ids[1] ?? '', message: 'first', timestamp: '2026-03-01T00:00:00.000Z' })
    const second = newLog({ id: ids[0] ?? '', message: 'second', timestamp: '2026-02-01T00:00:00.000Z' })
    await holder.commit({ logs: [late] })
    await holder.commit({ logs: [first, second], steps: [stepWrite()], outcome: outcomeOf('complete') })
    const logs = await kit.logs.getLogs(holder.id, {})
    assertEqual(
      logs.map(({ message }) => message),
      ['late', 'first', 'second'],
      'messages',
    )
  },

  'reading goes on after an id, up to a limit': async (kit) => {
    const holder = await kit.start()
    const logs = Array.from({ length: 5 }, (_, index) => newLog({ message: String(index) }))
    await holder.commit({ logs })
    const messages = async (options: { after?: string; limit?: number }) =>
      (await kit.logs.getLogs(holder.id, options)).map(({ message }) => message)
    const at = (index: number) => itemAt(logs, index, 'logs written').id
    assertEqual(await messages({ limit: 2 }), ['0', '1'], 'the first two')
    assertEqual(await messages({ after: at(1), limit: 2 }), ['2', '3'], 'the next two')
    assertEqual(await messages({ after: at(3) }), ['4'], 'the rest')
    assertEqual(await messages({ after: at(4) }), [], 'after the last')
  },

  'logs are read by their tenant only': async (kit) => {
    const holder = await kit.start({ tenant: 'acme' })
    await holder.commit({ logs: [newLog()] })
    assertEqual((await kit.logs.getLogs(holder.id, { tenant: 'acme' })).length, 1, 'logs read by the tenant')
    assertEqual(await kit.logs.getLogs(holder.id, { tenant: '' }), [], 'logs read by another tenant')
    assertEqual(await kit.logs.getLogs(newId(), {}), [], 'logs of an unknown run')
  },

  'logs of many runs are found by their ids': async (kit) => {
    const [one, other] = [await kit.start(), await kit.start()]
    const logs = [newLog({ message: 'a' }), newLog({ message: 'b' }), newLog({ message: 'c', data: '[1]' })] as const
    await one.commit({ logs: logs.slice(0, 2) })
    await other.commit({ logs: logs.slice(2) })
    const [a, , c] = logs
    const places = [
      { runId: other.id, id: c.id },
      { runId: one.id, id: newId() },
      { runId: one.id, id: a.id },
      { runId: newId(), id: newId() },
    ]
    const found = [...(await kit.logs.findLogs(places))].sort((x, y) => x.message.localeCompare(y.message))
    const written = [
      { ...a, runId: one.id },
      { ...c, runId: other.id },
    ]
    assertEqual(found, written, 'the logs')
    assertEqual(await kit.logs.findLogs([]), [], 'none of the logs')
  },

  'a lost commit writes no log, one sent twice writes one': async (kit) => {
    const holder = await kit.start()
    await holder.send({ ...holder.next({ logs: [newLog()] }), commitNo: 5 })
    const commit = holder.next({ logs: [newLog()] })
    await holder.send(commit)
    await holder.send(commit)
    assertEqual((await kit.logs.getLogs(holder.id, {})).length, 1, 'number of logs')
  },

  'logs go with their run': async (kit) => {
    const holder = await kit.start()
    await holder.leave('complete', {}, { logs: [newLog()] })
    await kit.order('remove', holder.id)
    assertEqual(await kit.logs.getLogs(holder.id, {}), [], 'logs')
  },
})
