/** Shows each run with a box for each of its steps. */
export function showRuns(list, runs, stepCount) {
  list.replaceChildren(...runs.map((entry) => runItem(entry, stepCount)))
}

function runItem({ run, steps }, stepCount) {
  const done = steps.filter(({ status }) => status === 'completed')
  const title = element('div', { textContent: `${run.status}, ${done.length} of ${stepCount} steps ` })
  title.append(element('time', { dateTime: run.createdAt, textContent: new Date(run.createdAt).toLocaleTimeString() }))
  const boxes = element('ol', { className: 'steps' })
  for (let index = 0; index < stepCount; index++) boxes.append(box(done[index]))
  const item = element('li', { id: run.id, className: 'run' })
  item.dataset.status = run.status
  item.append(title, boxes)
  if (run.error !== null) item.append(element('p', { className: 'trouble', textContent: run.error }))
  return item
}

function box(step) {
  if (step === undefined) return element('li', { textContent: '·' })
  return element('li', { className: 'done', textContent: step.output.visit, title: step.name })
}

function element(name, properties) {
  return Object.assign(document.createElement(name), properties)
}
