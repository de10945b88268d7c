import { codeOf, textOf } from '../notices'

/** There is no database to be had: what is wrong, and the two ways to go on. */
export function StartError({ error }: { readonly error: unknown }) {
  const code = codeOf(error)
  return (
    <main className="full-page">
      <div className="card start-error" role="alert">
        <h1>The jobs have no place to be stored</h1>
        <p>
          durably keeps what a job has done in a file of this site, and here there is none to be had. In memory
          everything works all the same, and a reload forgets it.
        </p>
        <div className="button-row">
          <button type="button" className="primary" onClick={() => location.reload()}>
            Try again
          </button>
          <button type="button" onClick={goOnInMemory}>
            Go on in memory
          </button>
        </div>
        <p className="muted small">
          For those who made this page: {textOf(error)}
          {code !== null && (
            <>
              {' '}
              The error has the code <code>{code}</code>.
            </>
          )}
        </p>
      </div>
    </main>
  )
}

function goOnInMemory(): void {
  const url = new URL(location.href)
  url.searchParams.set('memory', '')
  location.assign(url)
  // With nothing but a new hash to go to the browser would stay where it is.
  if (url.href === location.href) location.reload()
}
