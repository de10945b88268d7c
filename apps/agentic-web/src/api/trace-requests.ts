import { context as active, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'

const tracer = trace.getTracer('agentic-web')
const SERVER_ERROR = 500

/** A span for each request, by its route: what it starts belongs to the trace of it. One of a stream ends when that begins. */
export const traceRequests: MiddlewareHandler = (context, next) => {
  const { method } = context.req
  const parent = propagation.extract(active.active(), context.req.header())
  const attributes = { 'http.request.method': method }
  const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent)
  return active.with(trace.setSpan(parent, span), async () => {
    try {
      await next()
    } finally {
      const route = routePath(context, -1)
      const { status } = context.res
      span.updateName(`${method} ${route}`)
      span.setAttributes({ 'http.route': route, 'http.response.status_code': status })
      if (status >= SERVER_ERROR) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    }
  })
}
