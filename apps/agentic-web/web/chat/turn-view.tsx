import { Markdown } from './markdown'
import type { TurnProgress } from './progress'
import { ToolCallView } from './tool-call'

interface TurnViewProps {
  readonly runId: string
  readonly turn: TurnProgress
  readonly isRunOver: boolean
}

export function TurnView({ runId, turn, isRunOver }: TurnViewProps) {
  const { text, reasoning, isRepeated, error, calls } = turn
  const isGrowing = !turn.isOver && !isRunOver
  return (
    <div className="turn">
      {isRepeated && <p className="turn-note">The answer was cut off, so the model was asked again.</p>}
      {reasoning !== '' && (
        <details className="reasoning">
          <summary>{isGrowing && text === '' ? 'Thinking …' : 'Thoughts'}</summary>
          <p>{reasoning}</p>
        </details>
      )}
      {text !== '' && <Markdown text={text} isGrowing={isGrowing} />}
      {calls.map((call) => (
        <ToolCallView key={call.call} runId={runId} call={call} isRunOver={isRunOver} />
      ))}
      {error !== null && !isRunOver && (
        <p className="turn-note is-warn">The model failed ({error}), and is asked again.</p>
      )}
    </div>
  )
}
