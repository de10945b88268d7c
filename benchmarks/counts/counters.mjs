import { createHook } from 'node:async_hooks'
import { Session } from 'node:inspector'
import { Socket } from 'node:net'
import Database from 'better-sqlite3'
import { nativeLibsql } from '../databases.mjs'

/** Counts until it is stopped; answers what was there meanwhile. None of them lets a promise or a timer of its own in. */

export function countAsync() {
  const counts = { promises: 0, timers: 0, immediates: 0 }
  const kinds = { PROMISE: 'promises', Timeout: 'timers', Immediate: 'immediates' }
  const hook = createHook({
    init(_id, type) {
      const kind = kinds[type]
      if (kind !== undefined) counts[kind] += 1
    },
  })
  hook.enable()
  return () => {
    hook.disable()
    return counts
  }
}

/** Of the samples V8 takes every few kilobytes, those of what is garbage by now included. */
export function countAllocated() {
  const session = new Session()
  session.connect()
  // In its own thread it answers before `post` returns.
  const ask = (method, parameters) => {
    let answer
    session.post(method, parameters, (error, result) => {
      if (error) throw new Error(`${method}: ${error.message}`)
      answer = result
    })
    return answer
  }
  ask('HeapProfiler.startSampling', {
    samplingInterval: 8192,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  return () => {
    const { profile } = ask('HeapProfiler.stopSampling')
    session.disconnect()
    return { allocated: bytesBelow(profile.head) }
  }
}

function bytesBelow({ selfSize, children }) {
  return children.reduce((sum, child) => sum + bytesBelow(child), selfSize)
}

/** Statements as the driver executes them, and the bytes that are bound. */
function countInProcess(Library) {
  const counts = { statements: 0, sent: 0 }
  const probe = new Library(':memory:')
  const statements = Object.getPrototypeOf(probe.prepare('select 1'))
  probe.close()
  const count = (original) => {
    return function (...parameters) {
      counts.statements += 1
      counts.sent += bytesOf(parameters)
      return original.apply(this, parameters)
    }
  }
  const restores = ['run', 'all', 'get'].map((name) => replaced(statements, name, count))
  // What has no parameters may be sent without being prepared.
  restores.push(replaced(Library.prototype, 'exec', count))
  return () => {
    for (const restore of restores) restore()
    return counts
  }
}

function bytesOf(value) {
  if (Array.isArray(value)) return value.reduce((sum, one) => sum + bytesOf(one), 0)
  if (typeof value === 'string') return Buffer.byteLength(value)
  return value === null || value === undefined ? 0 : 8
}

/** What a client of Postgres says with them: https://www.postgresql.org/docs/current/protocol-message-formats.html */
const EXECUTES = new Set(['E', 'Q'])
const WAITS_FOR_ANSWER = new Set(['S', 'Q'])

/** Statements and round trips as they go over the sockets, and all bytes of that. */
function countOnPostgres() {
  const counts = { statements: 0, roundTrips: 0, sent: 0 }
  const restore = replaced(Socket.prototype, 'write', (original) => {
    return function (chunk, ...rest) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk)
      counts.sent += bytes.length
      for (const type of typesIn(bytes)) {
        if (EXECUTES.has(type)) counts.statements += 1
        if (WAITS_FOR_ANSWER.has(type)) counts.roundTrips += 1
      }
      return original.call(this, chunk, ...rest)
    }
  })
  return () => {
    restore()
    return counts
  }
}

/** The driver writes whole messages: a type, a length that counts itself, the rest. */
function* typesIn(bytes) {
  for (let at = 0; at + 5 <= bytes.length && bytes[at] !== 0; at += 1 + bytes.readUInt32BE(at + 1)) {
    yield String.fromCharCode(bytes[at])
  }
}

function replaced(target, name, replace) {
  const isOwn = Object.hasOwn(target, name)
  const original = target[name]
  target[name] = replace(original)
  return () => {
    if (isOwn) target[name] = original
    else delete target[name]
  }
}

const STATEMENTS_ON = {
  memory: () => () => ({}),
  'better-sqlite3': () => countInProcess(Database),
  libsql: () => countInProcess(nativeLibsql()),
  postgres: countOnPostgres,
}

export function countStatements(driver) {
  return STATEMENTS_ON[driver]()
}
