import type { Log } from '@coji/durably-core'
import type { StepView } from '@coji/durably-react'
import { formatClock, formatDuration } from '../format'
import { JsonView } from '../parts/json-view'
import { LogLine } from './log-line'

interface StepDetailProps {
  readonly steps: readonly StepView[]
  readonly logs: readonly Log[]
}

/** Each attempt of a step: what it gave, or why it failed, and what it logged. */
export function StepDetail({ steps, logs }: StepDetailProps) {
  return (
    <div className="step-detail">
      {steps.map((step, index) => (
        <StepAttempt
          key={`${step.startedAt} ${step.status}`}
          step={step}
          number={steps.length > 1 ? index + 1 : null}
        />
      ))}
      {logs.length > 0 && (
        <ol className="log-lines" aria-label="Log lines of the step">
          {logs.map((log) => (
            <li key={log.id}>
              <LogLine log={log} isWithin />
            </li>
          ))}
        </ol>
      )}
    </div>
  )
}

function StepAttempt({ step, number }: { readonly step: StepView; readonly number: number | null }) {
  const { status, startedAt, completedAt, dueAt, error, errorDetail, output, checkpoint, name } = step
  return (
    <div className="step-attempt">
      <p className="small muted">
        {number !== null && <strong>Try {number}: </strong>}
        {status} · began {formatClock(startedAt)}
        {completedAt !== null && ` · took ${formatDuration(Date.parse(completedAt) - Date.parse(startedAt))}`}
        {dueAt !== null && completedAt === null && ` · goes on at ${formatClock(dueAt)} at the latest`}
      </p>
      {error !== null && <ErrorText message={error} stack={errorDetail?.stack} />}
      {status === 'completed' && output !== undefined && <JsonView value={output} label={`Output of ${name}`} />}
      {checkpoint !== undefined && checkpoint !== null && (
        <JsonView value={checkpoint} label={`Checkpoint of ${name}`} />
      )}
    </div>
  )
}

interface ErrorTextProps {
  readonly message: string
  readonly stack: string | undefined
}

export function ErrorText({ message, stack }: ErrorTextProps) {
  return (
    <div className="error-text">
      <p>{message}</p>
      {stack !== undefined && (
        <details>
          <summary>Stack</summary>
          <pre>{stack}</pre>
        </details>
      )}
    </div>
  )
}
