export { withTelemetry } from '@coji/durably-plugins/telemetry'
export type { TelemetryOptions } from '@coji/durably-plugins/telemetry'
