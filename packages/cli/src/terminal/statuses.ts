import type { RunStatus } from '@coji/durably'
import type { Paint, Style } from './paint'

const STYLES: Readonly<Record<RunStatus, Style>> = {
  pending: 'cyan',
  assigned: 'cyan',
  running: 'blue',
  completed: 'green',
  failed: 'red',
  timed_out: 'red',
  cancelled: 'yellow',
  orphaned: 'yellow',
}

export function paintStatus(paint: Paint, status: RunStatus, text: string = status): string {
  return paint(STYLES[status], text)
}
