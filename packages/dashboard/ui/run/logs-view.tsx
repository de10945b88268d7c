import type { RunLogs } from '@coji/durably-react'
import { Trouble } from '../parts/trouble'
import { VirtualRows } from '../parts/virtual-rows'
import { LogLine } from './log-line'

export function LogsView({ logs: { logs, isLoading, trouble } }: { readonly logs: RunLogs }) {
  if (logs.length === 0) {
    return (
      <>
        <Trouble error={trouble} />
        <p className="muted card-empty">
          {isLoading ? 'Reading …' : 'Nothing was logged, or nobody keeps what is: withLogPersistence() does.'}
        </p>
      </>
    )
  }
  return (
    <>
      <Trouble error={trouble} />
      <VirtualRows
        label="Logs"
        count={logs.length}
        rowHeight={26}
        keyOf={(index) => logs[index]?.id ?? String(index)}
        render={(index) => {
          const log = logs[index]
          return log === undefined ? null : <LogLine log={log} />
        }}
      />
    </>
  )
}
