import { useRunStore } from '@coji/durably-react'
import type { ServedSchedule } from '@coji/durably-server/client'
import { useState } from 'react'
import { Link } from 'wouter'
import { type DashboardApi, useMay, useViewer } from '../api'
import { formatCount, formatMoment, shortId } from '../format'
import { Dialog } from '../parts/dialog'
import { Fact } from '../parts/fact'
import { useNotices } from '../parts/notices'
import { timingWords } from './timing-words'

interface ScheduleRowProps {
  readonly schedule: ServedSchedule
  readonly onChange: () => void
}

export function ScheduleRow({ schedule, onChange }: ScheduleRowProps) {
  const { name, tenant, jobName, pausedBecause, nextAt, endedAt, source, firedCount, missedCount } = schedule
  const next =
    pausedBecause !== null ? '–' : nextAt !== null ? formatMoment(nextAt) : endedAt !== null ? 'never' : 'soon'
  return (
    <li className="card entry">
      <div className="entry-name">
        <h2>{name}</h2>
        {pausedBecause !== null && <span className="chip is-warn">Paused</span>}
        {endedAt !== null && <span className="chip is-quiet">Over</span>}
        {tenant !== '' && <span className="badge">tenant {tenant}</span>}
      </div>
      <dl className="entry-facts">
        <Fact name="Job">
          <Link href={`/?${new URLSearchParams({ job: jobName })}`}>{jobName}</Link>
        </Fact>
        <Fact name="Fires">{timingWords(schedule.timing)}</Fact>
        <Fact name="Next">{next}</Fact>
        <Fact name="Fired">
          {formatCount(firedCount)} times{missedCount > 0 && `, ${formatCount(missedCount)} missed`}
        </Fact>
        <Fact name="Defined by">{source === null ? 'hand' : `the code of ${source}`}</Fact>
        {pausedBecause !== null && <Fact name="Paused because">{pausedBecause}</Fact>}
      </dl>
      <ScheduleActions schedule={schedule} onChange={onChange} />
    </li>
  )
}

interface ScheduleAction {
  readonly label: string
  readonly words: string
  /** Does it, and says what was done. */
  perform(api: DashboardApi, schedule: ServedSchedule): Promise<string>
}

const RUN: ScheduleAction = {
  label: 'Run now',
  words: 'One run of it is created at once, beside its instants.',
  async perform(api, { name, tenant }) {
    const { id } = await api.runSchedule(name, { tenant })
    return `Run ${shortId(id)} was created.`
  },
}

const PAUSE: ScheduleAction = {
  label: 'Pause',
  words: 'It fires no more until somebody resumes it. Runs that are there go on.',
  async perform(api, { name, tenant }) {
    await api.pauseSchedule(name, { tenant })
    return `${name} is paused.`
  },
}

const RESUME: ScheduleAction = {
  label: 'Resume',
  words: 'It fires again from now on. What it has missed meanwhile is not made up for.',
  async perform(api, { name, tenant }) {
    await api.resumeSchedule(name, { tenant })
    return `${name} fires again.`
  },
}

function ScheduleActions({ schedule, onChange }: ScheduleRowProps) {
  const [asking, setAsking] = useState<ScheduleAction | null>(null)
  const [mayTrigger, maySchedule] = [useMay('trigger'), useMay('schedule')]
  const change = schedule.pausedBecause === null ? PAUSE : RESUME
  const actions = [...(mayTrigger ? [RUN] : []), ...(maySchedule && schedule.endedAt === null ? [change] : [])]
  if (actions.length === 0) return null
  return (
    <div className="button-row">
      {actions.map((action) => (
        <button
          key={action.label}
          type="button"
          aria-label={`${action.label}: ${schedule.name}`}
          onClick={() => setAsking(action)}
        >
          {action.label}
        </button>
      ))}
      {asking !== null && <ActionDialog {...{ schedule, onChange }} action={asking} onClose={() => setAsking(null)} />}
    </div>
  )
}

interface ActionDialogProps extends ScheduleRowProps {
  readonly action: ScheduleAction
  readonly onClose: () => void
}

function ActionDialog({ schedule, action, onChange, onClose }: ActionDialogProps) {
  const { tell } = useNotices()
  const { api } = useViewer()
  const store = useRunStore()
  const [isBusy, setIsBusy] = useState(false)
  const perform = async () => {
    setIsBusy(true)
    try {
      tell(await action.perform(api, schedule))
      onChange()
      store.refresh()
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), 'bad')
    }
    onClose()
  }
  return (
    <Dialog
      title={`${action.label}: ${schedule.name}?`}
      confirm={{ label: action.label, isBusy }}
      onConfirm={() => void perform()}
      onClose={onClose}
    >
      <p>{action.words}</p>
    </Dialog>
  )
}
