import { type Context, isSpanContextValid, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api'

const TRACE_PARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

/** As W3C Trace Context has it, version 00; `null` where no span is active. */
export function traceParentOf(span: Span | undefined): string | null {
  const active = span?.spanContext()
  if (active === undefined || !isSpanContextValid(active)) return null
  return `00-${active.traceId}-${active.spanId}-${(active.traceFlags & 0xff).toString(16).padStart(2, '0')}`
}

/** What spans of the run are children of; without one they begin a trace of their own. */
export function contextOf(traceParent: string | null): Context {
  const [, traceId = '', spanId = '', flags = ''] = TRACE_PARENT.exec(traceParent ?? '') ?? []
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
}
