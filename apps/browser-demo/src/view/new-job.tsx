import { useState } from 'react'
import type { DemoActions } from '../demo-actions'
import { DOCUMENTS, type OnShare, SAMPLE_ROWS } from '../inputs'
import { formatCount, formatPercent } from '../format'
import { DropZone } from './drop-zone'

interface Preparation {
  readonly what: string
  readonly share: number
}

const DEFAULT_ROWS = 100_000

/** Starts jobs: from a file, or from samples. */
export function NewJob({ actions }: { readonly actions: DemoActions }) {
  const [rows, setRows] = useState<number>(DEFAULT_ROWS)
  const [preparation, setPreparation] = useState<Preparation | null>(null)
  const prepare = async (what: string, start: (onShare: OnShare) => Promise<void>) => {
    setPreparation({ what, share: 0 })
    await start((share) => setPreparation({ what, share: Math.min(1, share) }))
    setPreparation(null)
  }
  const isBusy = preparation !== null
  return (
    <section className="card new-job" aria-labelledby="new-job">
      <h2 id="new-job">New job</h2>
      <DropZone
        isBusy={isBusy}
        onFile={(file) => prepare(`Copying ${file.name}`, (onShare) => actions.importFile(file, onShare))}
      />
      <div className="button-row">
        <button
          type="button"
          className="primary"
          disabled={isBusy}
          onClick={() => prepare('Writing the sample', (onShare) => actions.importSample(rows, onShare))}
        >
          Import sample
        </button>
        <label className="size">
          <span className="visually-hidden">Sample size</span>
          <select value={rows} onChange={(event) => setRows(Number(event.target.value))}>
            {SAMPLE_ROWS.map((count) => (
              <option key={count} value={count}>
                {formatCount(count)} rows
              </option>
            ))}
          </select>
        </label>
      </div>
      <div className="button-row">
        <button
          type="button"
          disabled={isBusy}
          onClick={() => prepare('Writing the documents', (onShare) => actions.buildSearchIndex(onShare))}
        >
          Build search index
        </button>
        <span className="muted small">{formatCount(DOCUMENTS)} documents</span>
      </div>
      <PreparationBar preparation={preparation} />
    </section>
  )
}

function PreparationBar({ preparation }: { readonly preparation: Preparation | null }) {
  if (preparation === null) return null
  const { what, share } = preparation
  return (
    <div className="preparation">
      <progress value={share} max={1} aria-label={what} />
      <span className="small muted">
        {what} … {formatPercent(share)}
      </span>
    </div>
  )
}
