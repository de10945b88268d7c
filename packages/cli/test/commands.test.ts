import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, type Ids, PLACES, type Program, usePrograms } from './kit'

const programs = usePrograms()

describe.each(PLACES)('beside an application at work on $name', ({ open }) => {
  let place: Awaited<ReturnType<typeof open>>
  let worker: Program
  let ids: Ids
  const durably = (...args: readonly string[]) => programs.durably(...args, '--db', place.address)
  /** In this process, which is quicker. */
  const json = async (...args: readonly string[]) => {
    const { code, out, err } = await call([...args, '--db', place.address, '--json'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    return JSON.parse(out)
  }

  beforeAll(async () => {
    place = await open()
    worker = programs.start('worker', [place.address])
    const [first] = await worker.said(/^\{.*\}$/m)
    ids = JSON.parse(first)
  })
  afterAll(async () => {
    worker.child.kill('SIGKILL')
    await worker.ended
    await place.dispose()
  })

  it('tells how it stands', async () => {
    const report = await json('status')
    expect(report.counts).toMatchObject({ failed: 3, timed_out: 0 })
    // One is for later, and one nobody knows.
    expect(report.counts.pending).toBeGreaterThanOrEqual(2)
    expect(report.oldestDue).toMatchObject({ id: ids.unknown, jobName: 'nobody-knows-me' })
    const { code, out } = await durably('status')
    expect(code).toBe(0)
    expect(out).toMatch(/pending +\d+\n/)
    expect(out).toMatch(/failed +3\n/)
    expect(out).toContain(`Longest due  ${ids.unknown} (nobody-knows-me), for `)
  })

  it('lists runs by what is asked for, page by page', async () => {
    const failed = await json('runs', '--status', 'failed,timed_out', '--job', 'charge', '--tenant', 'acme')
    expect(failed.runs.map(({ id }: { id: string }) => id)).toEqual([...ids.refused].reverse())
    const labelled = await json('runs', '--label', 'team=red', '--since', '1h')
    expect(labelled).toMatchObject({ runs: [{ id: ids.done, status: 'completed', output: 6 }], next: null })
    expect(await json('runs', '--label', 'team=red', '--until', '1h')).toEqual({ runs: [], next: null })
    expect((await json('runs', '--error-code', 'E_CARD')).runs).toHaveLength(3)

    const first = await json('runs', '--status', 'failed', '--limit', '2')
    const second = await json('runs', '--status', 'failed', '--limit', '2', '--cursor', first.next)
    expect([...first.runs, ...second.runs].map(({ id }) => id)).toEqual([...ids.refused].reverse())
    expect(second.next).toBe(null)
  })

  it('shows a run, and why it is where it is', async () => {
    const [id = ''] = ids.refused
    const failed = await durably('run', id)
    expect(failed.code).toBe(0)
    expect(failed.out).toContain(`Run ${id} of job "charge" failed at`)
    expect(failed.out).toContain('in step "pay": The card of order 17 was refused. `durably retry')
    expect(failed.out).toMatch(/^reserve +completed +run +1 +\S+ \S+ +"room for 17"$/m)
    expect(failed.out).toMatch(/^pay +failed +run +1/m)
    const waiting = await json('show', ids.talking)
    expect(waiting.explanation).toContain('waits for "word"')
    expect((await json('run', ids.unknown)).explanation).toContain('waits for a worker that knows the job.')
  })

  it('prints what was logged, and follows what is being logged', async () => {
    const [id = ''] = ids.refused
    const logged = await durably('logs', id)
    expect(logged.out).toMatch(/^\S+ warn {2}pay the bank hesitates \{"order":"17"\}\n$/)
    const following = programs.start('durably', ['logs', ids.talking, '--follow', '--db', place.address])
    await following.said(/hello\n/)
    worker.child.stdin?.write('sesame\n')
    const { code, out, err } = await following.ended
    expect(code).toBe(0)
    expect(out.split('\n').map((line) => line.slice(31))).toEqual(['greet hello', 'answer you said sesame', ''])
    expect(err).toBe(`Run ${ids.talking} is completed.\n`)
  })

  it('retries and cancels', async () => {
    const [first = ''] = ids.refused
    expect(await json('retry', first)).toEqual({ done: [first], skipped: [] })
    await expect.poll(async () => (await json('run', first)).run).toMatchObject({ status: 'failed', attempt: 2 })

    const plan = await durably('retry', '--job', 'charge', '--until', '0s', '--dry-run')
    expect(plan.out).toContain('Would retry 3 runs. Nothing was done.')
    const unasked = await durably('retry', '--job', 'charge')
    expect(unasked).toMatchObject({ code: 2, out: '' })
    expect(unasked.err).toContain('Say --yes')
    const retried = await json('retry', '--job', 'charge', '--status', 'failed', '--yes')
    expect(retried).toEqual({ done: [...ids.refused].reverse(), skipped: [] })

    const cancelled = await durably('cancel', ids.late)
    expect(cancelled.out).toBe(`Run ${ids.late} of sum is cancelled.\n`)
    const again = await durably('cancel', ids.late)
    expect(again).toMatchObject({ code: 1, out: '' })
    expect(again.err).toBe(
      `Run ${ids.late} is cancelled. durably cancel takes a run that is pending, assigned, running, orphaned.\n`,
    )
    expect((await durably('cancel', '--job', 'nobody-knows-me', '--yes')).out).toMatch(/^1 run was cancelled/)
  })

  it('knows that there is nothing to migrate', async () => {
    const { schemaVersion } = await json('status')
    expect(await json('migrate')).toMatchObject({ from: schemaVersion, to: schemaVersion })
  })

  it('has left the application alone', async () => {
    worker.child.stdin?.write('stop\n')
    const { out } = await worker.ended
    const last = JSON.parse(out.trim().split('\n').at(-1) ?? '')
    expect(last.errors).toEqual([])
    expect(last.worked).toBeGreaterThan(0)
  })
})
