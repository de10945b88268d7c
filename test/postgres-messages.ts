/** A message of a client, whole. */
export interface Request {
  readonly bytes: Buffer
  /** What it makes the server execute, if it does. */
  readonly sql?: string
  /** The server answers what came until here with one `ReadyForQuery`. */
  readonly isLast: boolean
}

/** A message of the server, whole. */
export interface Answer {
  readonly bytes: Buffer
  readonly isReady: boolean
}

/** Splits what a client sends into messages; remembers the statements that it prepares. Without TLS only. */
export function requests(): (chunk: Buffer) => readonly Request[] {
  const prepared = new Map<string, string>()
  const split = splitter({ hasStartup: true })
  return (chunk) => split(chunk).map((bytes) => readRequest(bytes, prepared))
}

export function answers(): (chunk: Buffer) => readonly Answer[] {
  const split = splitter({ hasStartup: false })
  let isStarted = false
  return (chunk) =>
    split(chunk).map((bytes) => {
      const isReady = typeOf(bytes) === 'Z'
      // The first one belongs to the start of the connection, which is no request.
      const counts = isReady && isStarted
      isStarted ||= isReady
      return { bytes, isReady: counts }
    })
}

function readRequest(bytes: Buffer, prepared: Map<string, string>): Request {
  if (typeOf(bytes) === 'Q') return { bytes, sql: stringsOf(bytes)[0] ?? '', isLast: true }
  if (typeOf(bytes) === 'P') {
    const [name = '', sql = ''] = stringsOf(bytes)
    prepared.set(name, sql)
  }
  if (typeOf(bytes) === 'B') {
    const sql = prepared.get(stringsOf(bytes)[1] ?? '')
    return { bytes, ...(sql !== undefined && { sql }), isLast: false }
  }
  return { bytes, isLast: typeOf(bytes) === 'S' }
}

/** The start of a connection has no type; its first byte, of a length, is 0. */
function typeOf(bytes: Buffer): string {
  return String.fromCharCode(bytes[0] ?? 0)
}

/** The first strings of a message, each ended by a zero byte. */
function stringsOf(bytes: Buffer): readonly string[] {
  const first = bytes.indexOf(0, 5)
  const second = bytes.indexOf(0, first + 1)
  return [bytes.toString('utf8', 5, first), bytes.toString('utf8', first + 1, second)]
}

function splitter({ hasStartup }: { readonly hasStartup: boolean }): (chunk: Buffer) => readonly Buffer[] {
  let rest = Buffer.alloc(0)
  let isStartup = hasStartup
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    const messages: Buffer[] = []
    for (;;) {
      const before = isStartup ? 0 : 1
      const length = rest.length < before + 4 ? Number.POSITIVE_INFINITY : before + rest.readInt32BE(before)
      if (rest.length < length) return messages
      messages.push(rest.subarray(0, length))
      rest = rest.subarray(length)
      isStartup = false
    }
  }
}
