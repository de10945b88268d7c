import { createKyselyStorage } from '../../src'
import { claim, COMPLETE, newCommit, newStep } from '../builders'
import { connect } from './connect'

/** Takes runs and finishes them with one step each until none is left; says which. */
const [driver = '', file = '', name = ''] = process.argv.slice(2)
const storage = createKyselyStorage({ dialect: connect(driver, file), durability: 'fast' })
const done: string[] = []
for (;;) {
  const runs = await claim(storage, 2)
  if (runs.length === 0) break
  for (const run of runs) {
    const step = newStep({ id: `${name}-${run.id}`, name: 'only', output: JSON.stringify(name) })
    const [first] = await storage.commit([newCommit(run, { steps: [step] })])
    const [last] = await storage.commit([newCommit(run, { commitNo: 2, outcome: COMPLETE })])
    if (first?.kept === true && last?.kept === true) done.push(run.id)
  }
}
await storage.close()
process.stdout.write(JSON.stringify(done))
