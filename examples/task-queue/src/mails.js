import { z } from 'zod'

/** The payload of a task. */
export const mailSchema = z.object({ to: z.email(), subject: z.string(), text: z.string() })

/** @typedef {z.infer<typeof mailSchema>} Mail */

const ISSUE = 'The beetle post, no. 42'

const PEOPLE = ['ada', 'alan', 'barbara', 'donald', 'edsger', 'frances', 'grace', 'john', 'katherine', 'leslie']
const DOMAINS = ['home.example', 'greylisted.example', 'work.example', 'flaky.example', 'school.example']

/** The server behind each domain behaves in its own way: see faults.js. */
const ADDRESSES = [
  'niklaus@silent.example',
  'linus@broken.example',
  'margaret@broken.example',
  'nobody@home.example',
  ...PEOPLE.flatMap((name) => DOMAINS.map((domain) => `${name}@${domain}`)),
]

/** @type {readonly Mail[]} */
export const MAILS = ADDRESSES.map((to) => ({ to, subject: ISSUE, text: 'All beetles are well.' }))

/**
 * The same for the same mail, however often this program is started: its task is made once.
 *
 * @param {Mail} mail
 */
export function keyOf({ to, subject }) {
  return `${subject}: ${to}`
}
