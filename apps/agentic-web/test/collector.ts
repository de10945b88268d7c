import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Answered } from './deployment'

interface ToldSpan {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
}

export type Collector = Awaited<ReturnType<typeof startCollector>>

/** Takes spans and metrics as OpenTelemetry sends them, in JSON. */
export async function startCollector() {
  const spans: ToldSpan[] = []
  const metrics = new Set<string>()
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const { resourceSpans = [], resourceMetrics = [] } = JSON.parse(text) as Answered
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = resource.attributes.find(({ key }: Answered) => key === 'service.name').value.stringValue
      for (const span of scopeSpans.flatMap((scope: Answered) => scope.spans)) spans.push({ ...span, service })
    }
    for (const { scopeMetrics } of resourceMetrics) {
      for (const { name } of scopeMetrics.flatMap((scope: Answered) => scope.metrics)) metrics.add(name)
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    metrics,
    end() {
      server.close()
      server.closeAllConnections()
    },
  }
}
