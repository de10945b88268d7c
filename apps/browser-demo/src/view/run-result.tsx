import type { Run } from '@coji/durably'
import type { BuildSearchIndexOutput, ImportCsvOutput } from '@coji/durably-jobs'
import { formatCount, formatMoney } from '../format'

/** What came of the run, or of its last attempt. */
export function RunResult({ run }: { readonly run: Run }) {
  if (run.error !== null) {
    return (
      <section className="card result is-failed" aria-label="Error">
        <h3>
          {run.finishedAt === null ? 'Last error' : 'Error'}
          {run.errorDetail?.stepName !== undefined && ` in ${run.errorDetail.stepName}`}
        </h3>
        <p className="error-text">{run.error}</p>
      </section>
    )
  }
  if (run.status !== 'completed') return null
  return (
    <section className="card result" aria-label="Result">
      <h3>Result</h3>
      <Output run={run} />
    </section>
  )
}

/** The jobs check their outputs against their schemas before a run is completed. */
function Output({ run }: { readonly run: Run }) {
  if (run.jobName === 'import-csv') return <ImportOutput output={run.output as ImportCsvOutput} />
  if (run.jobName === 'build-search-index') return <IndexOutput output={run.output as BuildSearchIndexOutput} />
  return <pre>{JSON.stringify(run.output, null, 2)}</pre>
}

function ImportOutput({ output }: { readonly output: ImportCsvOutput }) {
  const { rows, accepted, rejected, byCategory, firstDate, lastDate, distinctCustomers } = output
  const refused = Object.entries(rejected).map(([reason, count]) => `${reason} ${formatCount(count)}`)
  return (
    <>
      <p>
        <strong>{formatCount(accepted)}</strong> of {formatCount(rows)} rows accepted
        {firstDate !== null && `, ${firstDate} to ${lastDate}`}, about {formatCount(distinctCustomers)} customers.
      </p>
      <Totals byCategory={byCategory} />
      {refused.length > 0 && <p className="muted small">Refused, by what was wrong: {refused.join(', ')}.</p>}
    </>
  )
}

function Totals({ byCategory }: Pick<ImportCsvOutput, 'byCategory'>) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Category</th>
          <th scope="col">Orders</th>
          <th scope="col">Units</th>
          <th scope="col">Revenue</th>
        </tr>
      </thead>
      <tbody>
        {Object.entries(byCategory).map(([category, { orders, units, cents }]) => (
          <tr key={category}>
            <th scope="row">{category}</th>
            <td>{formatCount(orders)}</td>
            <td>{formatCount(units)}</td>
            <td>{formatMoney(cents)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function IndexOutput({ output }: { readonly output: BuildSearchIndexOutput }) {
  const { documents, terms, postings, answers } = output
  return (
    <>
      <p>
        <strong>{formatCount(documents)}</strong> documents, {formatCount(terms)} terms, {formatCount(postings)}{' '}
        postings.
      </p>
      <dl className="answers">
        {answers.map(({ query, hits }) => (
          <div key={query}>
            <dt>{query}</dt>
            <dd>
              {hits.length === 0 && <span className="muted">nothing found</span>}
              {hits.slice(0, 3).map(({ id, score }) => (
                <span key={id} className="hit">
                  <code>{id}</code> <span className="muted">{score.toFixed(2)}</span>
                </span>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}
