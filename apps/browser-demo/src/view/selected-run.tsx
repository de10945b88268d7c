import { useEffect, useRef } from 'react'
import type { DemoActions } from '../demo-actions'
import type { DemoState } from '../demo-state'
import type { Observable } from '../observable'
import { RunDetailView } from './run-detail-view'
import { useStateOf } from './use-state-of'

interface SelectedRunProps {
  readonly state: Observable<DemoState>
  readonly actions: DemoActions
}

const NO_STEPS = [] as const

/** The run that the address names. */
export function SelectedRun({ state, actions }: SelectedRunProps) {
  const selectedId = useStateOf(state, (value) => value.selectedId)
  const detail = useStateOf(state, (value) => value.detail)
  const isMissing = useStateOf(state, (value) => value.isMissing)
  const openSteps = useStateOf(state, (value) => value.openSteps.get(selectedId ?? '') ?? NO_STEPS)
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = ref
    // On a narrow screen the detail is below the list, out of sight.
    if (selectedId !== null && matchMedia('(max-width: 899px)').matches) current?.scrollIntoView({ block: 'start' })
  }, [selectedId])
  return (
    <div ref={ref}>
      {detail !== null && <RunDetailView key={detail.run.id} detail={detail} openSteps={openSteps} actions={actions} />}
      {detail === null && <NoRun isMissing={isMissing} isReading={selectedId !== null && !isMissing} />}
    </div>
  )
}

function NoRun({ isMissing, isReading }: { readonly isMissing: boolean; readonly isReading: boolean }) {
  if (isReading) return <div className="card no-run muted">Reading the run …</div>
  return (
    <div className="card no-run">
      <h2>{isMissing ? 'This run is gone' : 'No run selected'}</h2>
      <p className="muted">
        {isMissing
          ? 'It was deleted, here or in another tab.'
          : 'Start a job, then kill its worker in the middle: the page comes back and goes on after the last stored step.'}
      </p>
    </div>
  )
}
