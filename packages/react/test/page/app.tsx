import type { Run } from '@coji/durably-core'
import { useState } from 'react'
import { useJob, useRun, useRunLogs, useRuns, useStream } from '../../src/index'
import { greet } from './jobs'

export interface AppProps {
  /** A run that is shown from the beginning, as a server has read it. */
  readonly initial?: Run<{ readonly words: number }>
  readonly onRender?: (shown: Shown) => void
}

/** What one render showed of a run. */
export interface Shown {
  readonly status: string | null
  readonly text: string
  readonly words: number | null
  readonly steps: readonly string[]
}

export function App({ initial, onRender }: AppProps) {
  const [isOpen, setIsOpen] = useState(true)
  return (
    <main>
      <button type="button" onClick={() => setIsOpen(!isOpen)}>
        {isOpen ? 'Close' : 'Open'}
      </button>
      {isOpen && <Greeting {...(initial !== undefined && { initial })} {...(onRender !== undefined && { onRender })} />}
    </main>
  )
}

function Greeting({ initial, onRender }: AppProps) {
  const job = useJob(greet, { runId: initial?.id })
  const id = job.runId
  return (
    <>
      <button type="button" onClick={() => void job.trigger({ name: 'Mia' })}>
        Greet
      </button>
      <button type="button" onClick={() => job.trigger({ name: 1 as never }).catch(() => {})}>
        Greet nobody
      </button>
      <output aria-label="Refusal">{job.triggerError?.message}</output>
      {id !== null && <RunPanel id={id} label="One" initial={initial} onRender={onRender} />}
      {id !== null && <RunPanel id={id} label="Another" initial={initial} />}
      <List />
    </>
  )
}

interface RunPanelProps {
  readonly id: string
  readonly label: string
  readonly initial: AppProps['initial']
  readonly onRender?: AppProps['onRender']
}

function RunPanel({ id, label, initial, onRender }: RunPanelProps) {
  const { status, output, text, progress, steps, isLive, isLoading } = useRun(id, { initial })
  const stream = useStream(id, { step: 'greeting' })
  const { logs } = useRunLogs(id)
  onRender?.({ status, text, words: output?.words ?? null, steps: steps.map((step) => `${step.name} ${step.status}`) })
  return (
    <section aria-label={label}>
      <p>{isLoading ? 'Loading' : `Status: ${status}${isLive ? ', live' : ''}`}</p>
      <p>Progress: {progress?.current ?? '–'}</p>
      <p>Text: {text}</p>
      <p>Stream: {stream.text}</p>
      <p>Words: {output?.words ?? '–'}</p>
      <ol>
        {steps.map((step) => (
          <li key={step.name}>
            {step.name} {step.status}
          </li>
        ))}
      </ol>
      <ul>
        {logs.map((log) => (
          <li key={log.id}>{log.message}</li>
        ))}
      </ul>
    </section>
  )
}

function List() {
  const { runs, isLoading, hasMore, showMore } = useRuns({ jobName: 'greet' }, { pageSize: 2 })
  return (
    <section aria-label="Runs">
      <p>{isLoading ? 'Loading' : `${runs.length} runs${hasMore ? ' and more' : ''}`}</p>
      <button type="button" onClick={showMore}>
        More
      </button>
    </section>
  )
}
