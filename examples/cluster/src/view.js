/**
 * @typedef {object} Seen
 * @property {import('@coji/durably-cluster').LeadRecord | null} leader
 * @property {readonly import('@coji/durably-cluster').WorkerRecord[]} workers
 * @property {Readonly<Record<string, number>>} counts
 * @property {readonly { readonly name: string, harm(): string }[]} members
 * @property {string} chosen
 */

const STATUSES = ['pending', 'assigned', 'running', 'orphaned', 'completed', 'failed']

/**
 * Who does what, as text.
 * @param {Seen} seen
 */
export function draw({ leader, workers, counts, members, chosen }) {
  const leads = leader === null ? 'nobody' : leader.isOver ? 'nobody since' : 'led by'
  const name = leader?.workerId.split(' ')[0] ?? ''
  const epoch = leader === null ? '' : `, epoch ${leader.epoch}`
  const rows = members.map((member) => {
    const worker = workers.find(({ workerId }) => workerId === member.name)
    const mark = member.name === chosen ? '>' : ' '
    const role = leader?.isOver === false && name === member.name ? 'leads' : ''
    const state = worker === undefined ? 'unknown' : worker.isAlive ? worker.presence : 'gone'
    const load = `${'#'.repeat(worker?.running ?? 0)}${'+'.repeat(worker?.assigned ?? 0)}`
    return `${mark} ${member.name.padEnd(8)} ${role.padEnd(6)} ${state.padEnd(9)} ${load.padEnd(6)} ${member.harm()}`
  })
  return [
    `The cluster: ${leads} ${name}${epoch}`,
    '',
    '  worker          state     runs',
    ...rows,
    '',
    STATUSES.map((status) => `${status} ${counts[status] ?? 0}`).join('   '),
    '',
    '1 2 3 choose   k kill or start   p pause or continue   c cut off or mend   q quit',
    'runs: # running, + assigned',
  ]
}
