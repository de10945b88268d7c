import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { answers, requests } from './postgres-messages.ts'

export type QueryMatch = (sql: string) => boolean

/** Stands between a client and Postgres, on loopback and with real sockets. */
export interface CutProxy {
  readonly port: number
  /** The address of a database, through this proxy. */
  through(url: string): string
  /** When each connection was asked for, by `performance.now()`; those that the server did not take count too. */
  readonly attempts: readonly number[]
  /**
   * Lets the next query that matches reach the server, waits until the server is done with it and cuts the connection
   * in place of the answer. Resolves with the query then.
   */
  cutAnswer(matches: QueryMatch): Promise<string>
  /** Cuts the connection in place of the next query that matches: the server never gets it. */
  cutRequest(matches: QueryMatch): Promise<string>
  /** Cuts all connections. */
  drop(): void
  close(): Promise<void>
}

interface Trap {
  readonly matches: QueryMatch
  readonly place: 'request' | 'answer'
  readonly sprung: (sql: string) => void
}

export async function startCutProxy(target: { readonly host: string; readonly port: number }): Promise<CutProxy> {
  const attempts: number[] = []
  const traps = new Set<Trap>()
  const open = new Set<Socket>()

  function springs(sql: string): Trap | undefined {
    const trap = [...traps].find(({ matches }) => matches(sql))
    if (trap !== undefined) traps.delete(trap)
    return trap
  }

  const server = createServer((client) => {
    attempts.push(performance.now())
    const upstream = connect(target.port, target.host)
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.once('close', () => open.delete(socket))
    }
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    forward({ client, upstream, springs })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  function drop(): void {
    for (const socket of open) socket.destroy()
  }
  function cut(place: Trap['place'], matches: QueryMatch): Promise<string> {
    return new Promise((sprung) => traps.add({ matches, place, sprung }))
  }
  return {
    port,
    attempts,
    through(url) {
      const address = new URL(url)
      address.hostname = '127.0.0.1'
      address.port = String(port)
      return address.href
    },
    cutAnswer: (matches) => cut('answer', matches),
    cutRequest: (matches) => cut('request', matches),
    drop,
    async close() {
      drop()
      server.close()
      await once(server, 'close')
    },
  }
}

interface ForwardParams {
  readonly client: Socket
  readonly upstream: Socket
  readonly springs: (sql: string) => Trap | undefined
}

function forward({ client, upstream, springs }: ForwardParams): void {
  let asked = 0
  let answered = 0
  let doomed: { readonly answer: number; readonly sql: string; readonly trap: Trap } | undefined

  function cut(trap: Trap, sql: string): void {
    client.destroy()
    upstream.destroy()
    trap.sprung(sql)
  }
  const read = requests()
  client.on('data', (chunk) => {
    for (const { bytes, sql, isLast } of read(chunk)) {
      const trap = sql === undefined || doomed !== undefined ? undefined : springs(sql)
      if (trap?.place === 'request') return cut(trap, sql ?? '')
      if (trap !== undefined) doomed = { answer: asked + 1, sql: sql ?? '', trap }
      if (isLast) asked += 1
      upstream.write(bytes)
    }
  })
  const readAnswers = answers()
  upstream.on('data', (chunk) => {
    for (const { bytes, isReady } of readAnswers(chunk)) {
      const isWithheld = doomed !== undefined && answered >= doomed.answer - 1
      if (isReady) answered += 1
      if (!isWithheld) client.write(bytes)
      else if (isReady && doomed !== undefined) return cut(doomed.trap, doomed.sql)
    }
  })
}
