import { styleText } from 'node:util'
import { TASK_STATES } from '@coji/durably/queue'

/** @typedef {import('@coji/durably/queue').TaskCounts} TaskCounts */

const COLORS = /** @type {const} */ ({
  queued: 'blue',
  running: 'cyan',
  retry_scheduled: 'yellow',
  succeeded: 'green',
  dead: 'red',
})

const NAME_WIDTH = 17
const COUNT_WIDTH = 5

/**
 * Where lines go, and the counts: on a terminal they stay below the lines and move, elsewhere each change is a line.
 *
 * @typedef {object} Screen
 * @property {(line: string) => void} print
 * @property {(counts: TaskCounts) => void} show
 * @property {() => void} leave leaves the counts where they are; the next ones are drawn anew
 */

/**
 * @param {NodeJS.WriteStream} out
 * @returns {Screen}
 */
export function openScreen(out) {
  return out.isTTY ? drawOn(out) : writeTo(out)
}

/**
 * @param {NodeJS.WritableStream} out
 * @returns {Screen}
 */
function writeTo(out) {
  let last = ''
  const print = (/** @type {string} */ line) => void out.write(`${line}\n`)
  return {
    print,
    show(counts) {
      const line = TASK_STATES.map((state) => `${state} ${counts[state]}`).join('  ')
      if (line !== last) print(line)
      last = line
    },
    leave() {
      last = ''
    },
  }
}

/**
 * @param {NodeJS.WriteStream} out
 * @returns {Screen}
 */
function drawOn(out) {
  /** @type {readonly string[]} */
  let bars = []
  const draw = (/** @type {readonly string[]} */ lines, /** @type {readonly string[]} */ next) => {
    const overOldBars = bars.length === 0 ? '' : `\x1b[${bars.length}A\x1b[0J`
    out.write(overOldBars + [...lines, ...next].map((line) => `${line}\n`).join(''))
    bars = next
  }
  return {
    print: (line) => draw([line], bars),
    show(counts) {
      const next = ['', ...barsOf(counts, out.columns)]
      if (next.join() !== bars.join()) draw([], next)
    },
    leave() {
      bars = []
    },
  }
}

/**
 * @param {TaskCounts} counts
 * @param {number} columns
 */
function barsOf(counts, columns) {
  const room = Math.max(0, columns - NAME_WIDTH - COUNT_WIDTH - 1)
  const all = TASK_STATES.reduce((sum, state) => sum + counts[state], 0)
  return TASK_STATES.map((state) => {
    const length = Math.ceil((counts[state] / Math.max(all, 1)) * room)
    const bar = styleText(COLORS[state], '█'.repeat(length))
    return `${state.padEnd(NAME_WIDTH)}${String(counts[state]).padStart(COUNT_WIDTH - 1)} ${bar}`
  })
}
