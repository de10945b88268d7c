import { createDurably, sqlocal, withTabLeader } from './durably/durably.js'
import { numbers } from './numbers.js'
import { showRuns } from './runs.js'

const STEPS = 10
const SHOWN = ['run:trigger', 'run:start', 'run:recover', 'step:complete', 'run:complete', 'run:fail']

const form = document.querySelector('#start')
const message = document.querySelector('#message')
const visit = Number(localStorage.getItem('visit') ?? 0) + 1
localStorage.setItem('visit', String(visit))

const durably = createDurably({ dialect: sqlocal('browser-plain.sqlite3') })
// One tab at a time executes; the others trigger and watch. A tab that is closed or reloaded is followed at once.
durably.use(withTabLeader({ name: 'browser-plain' }))

const tenSteps = durably.defineJob({ name: 'ten-steps', input: numbers('pause') }, async (ctx, { pause }) => {
  for (let step = 1; step <= STEPS; step++) {
    await ctx.run(`step ${step}`, async ({ signal }) => {
      console.info(`${ctx.runId} step ${step}`)
      await sleep(pause, signal)
      return { visit }
    })
    ctx.progress(step, STEPS)
  }
})

function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}

function tell(text, isTrouble = false) {
  message.textContent = text
  message.classList.toggle('trouble', isTrouble)
}

let shown = Promise.resolve()

function refresh() {
  shown = shown.catch(() => {}).then(show)
  return shown
}

async function show() {
  const runs = await durably.getRuns({ limit: 10 })
  const withSteps = await Promise.all(runs.map(async (run) => ({ run, steps: await durably.getSteps(run.id) })))
  showRuns(document.querySelector('#runs'), withSteps, STEPS)
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  try {
    await tenSteps.trigger({ pause: Number(new FormData(form).get('pause')) })
  } catch (error) {
    tell(error.message, true)
  }
})
document.querySelector('#kill').addEventListener('click', () => location.reload())
durably.onError((error, during) => tell(`${during}: ${error.message}`, true))
for (const type of SHOWN) durably.on(type, refresh)

try {
  await durably.migrate()
  await refresh()
  tell(`Ready. This is visit ${visit}.`)
  for (const button of form.querySelectorAll('button')) button.disabled = false
  durably.start()
} catch (error) {
  tell(error.message, true)
}
