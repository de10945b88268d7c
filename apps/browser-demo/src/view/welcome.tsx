/** What durably is and what to press, for a page without runs. */
export function Welcome({ isInMemory }: { readonly isInMemory: boolean }) {
  return (
    <section className="card welcome" aria-labelledby="welcome">
      {isInMemory ? <InMemory /> : <Stored />}
    </section>
  )
}

function Stored() {
  return (
    <>
      <Picture />
      <h2 id="welcome">A crash costs one step, not the job</h2>
      <p>
        durably runs long jobs as plain functions and stores the result of each step, so that the next worker goes on
        where the last one died. Press <strong>Import sample</strong>, then{' '}
        <strong>
          Kill <span className="on-wide">this tab's </span>worker
        </strong>{' '}
        in the middle.
      </p>
    </>
  )
}

/** Nothing here outlives the page, so nothing of it is promised. */
function InMemory() {
  return (
    <>
      <h2 id="welcome">Nothing is kept here</h2>
      <p>
        durably runs long jobs as plain functions, step by step, but this page has nowhere to store their results. Press{' '}
        <strong>Import sample</strong> to watch one all the same.
      </p>
    </>
  )
}

const DONE = [0, 62, 124] as const
const AGAIN = [282, 344, 406] as const

/** Steps, a worker that dies in one of them, and the next one that repeats this one only. */
function Picture() {
  return (
    <svg
      className="picture"
      viewBox="-2 0 474 96"
      role="img"
      aria-label="Three steps are stored. The worker dies in the fourth. The next worker repeats the fourth and goes on."
    >
      {DONE.map((x) => (
        <StoredStep key={x} x={x} look="odd" />
      ))}
      <rect className="cut" x="186" y="34" width="34" height="26" rx="5" />
      <path className="death" d="M230 24v46M223.500 17l13 13M236.500 17l-13 13" />
      <path className="hatched" d="M240 60l26-26M240 50l16-16M250 60l16-16" />
      {AGAIN.map((x) => (
        <StoredStep key={x} x={x} look="even" />
      ))}
      <text x="92" y="88">
        stored
      </text>
      <text x="230" y="88">
        worker dies
      </text>
      <text x="373" y="88">
        the next goes on
      </text>
    </svg>
  )
}

function StoredStep({ x, look }: { readonly x: number; readonly look: 'odd' | 'even' }) {
  return (
    <>
      <rect className={look} x={x} y="34" width="54" height="26" rx="5" />
      <path className="tick-mark" d={`M${x + 20} 47l5 5 9-10`} />
    </>
  )
}
