import { Icon, Spinner } from '../parts/icons'
import { DecisionForm } from './decision-form'
import type { CallProgress } from './progress'
import { ValueView } from './value-view'

const STATES: Readonly<Record<CallProgress['state'], string>> = {
  planned: 'not called yet',
  asking: 'waits for you',
  running: 'running',
  done: 'done',
  failed: 'failed',
  refused: 'refused',
  interrupted: 'interrupted',
}

interface ToolCallViewProps {
  readonly runId: string
  readonly call: CallProgress
  /** Nobody is asked any more. */
  readonly isRunOver: boolean
}

/** A call of a tool: folded, unless somebody has to decide. */
export function ToolCallView({ runId, call, isRunOver }: ToolCallViewProps) {
  const { tool, state, ask } = call
  const isStopped = isRunOver && (state === 'planned' || state === 'asking' || state === 'running')
  const label = isStopped ? 'not called' : STATES[state]
  const isAsking = ask !== null && state === 'asking' && !isRunOver
  return (
    <div className={`tool-call is-${isStopped ? 'stopped' : state}`}>
      <details>
        <summary>
          <Icon name="chevron" />
          <span className="tool-name">{tool}</span>
          <span className="tool-hint">{hintOf(call.arguments)}</span>
          <span className="tool-state">
            <StateIcon state={isStopped ? 'planned' : state} />
            {label}
          </span>
        </summary>
        <div className="tool-details">
          <ValueView label={call.isEdited ? 'Arguments, edited by you' : 'Arguments'} value={call.arguments} />
          {call.result !== null && call.result !== undefined && (
            <ValueView label={resultLabel(call)} value={call.result} />
          )}
        </div>
      </details>
      {isAsking && (
        <DecisionForm key={ask.name} runId={runId} name={ask.name} why={ask.why} tool={tool} given={call.arguments} />
      )}
    </div>
  )
}

function resultLabel({ state }: CallProgress): string {
  if (state === 'refused') return 'Why it was refused'
  return state === 'failed' ? 'What went wrong' : 'Result'
}

/** The first thing that it is called with, for whoever does not unfold it. */
function hintOf(given: unknown): string {
  const [first] = Object.values(Object(given))
  const text = typeof first === 'string' ? first : first === undefined ? '' : JSON.stringify(first)
  return text.replace(/\s+/g, ' ').slice(0, 120)
}

function StateIcon({ state }: { readonly state: CallProgress['state'] }) {
  if (state === 'running') return <Spinner />
  if (state === 'done') return <Icon name="check" />
  if (state === 'failed' || state === 'refused' || state === 'interrupted') return <Icon name="cross" />
  return state === 'asking' ? <Icon name="hand" /> : null
}
