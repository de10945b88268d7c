import { useEffect, useMemo, useRef } from 'react'
import type { DemoActions } from '../demo-actions'
import type { DemoState } from '../demo-state'
import type { Observable } from '../observable'
import { RunDetailView } from './run-detail-view'
import { useStateOf } from './use-state-of'
import { Welcome } from './welcome'

interface SelectedRunProps {
  readonly state: Observable<DemoState>
  readonly actions: DemoActions
  readonly isInMemory: boolean
}

const NO_STEPS = [] as const

/** The run that the address names. */
export function SelectedRun({ state, actions, isInMemory }: SelectedRunProps) {
  const selectedId = useStateOf(state, (value) => value.selectedId)
  const run = useStateOf(state, (value) => value.runs.get(selectedId ?? '') ?? null)
  const history = useStateOf(state, (value) => value.history)
  const liveSteps = useStateOf(state, (value) => value.liveSteps.get(selectedId ?? '') ?? NO_STEPS)
  const detail = useMemo(() => (run === null || history === null ? null : { ...history, run }), [run, history])
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = ref
    // On a narrow screen the detail is below the list, out of sight.
    if (selectedId !== null && matchMedia('(max-width: 899px)').matches) current?.scrollIntoView({ block: 'start' })
  }, [selectedId])
  return (
    <div ref={ref} className="selected-run">
      {detail === null ? (
        <NoDetail state={state} isInMemory={isInMemory} />
      ) : (
        <RunDetailView key={detail.runId} detail={detail} liveSteps={liveSteps} actions={actions} />
      )}
    </div>
  )
}

function NoDetail({ state, isInMemory }: Pick<SelectedRunProps, 'state' | 'isInMemory'>) {
  const { isMissing, isLoaded, selectedId, listed } = useStateOf(state, (value) => value)
  if (isMissing) return <Note title="This run is gone" text="It was deleted, here or in another tab." />
  if (!isLoaded || selectedId !== null) return <div className="card no-run is-late muted">Reading the run …</div>
  if (listed.length === 0) return <Welcome isInMemory={isInMemory} />
  return <Note title="No run selected" text="Choose one of the runs to see its steps." />
}

function Note({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <div className="card no-run">
      <h2>{title}</h2>
      <p className="muted">{text}</p>
    </div>
  )
}
