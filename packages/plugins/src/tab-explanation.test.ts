import { expect, it } from 'vitest'
import { explainWait, type Situation } from './tab-explanation'

const HEARD = { leading: { version: undefined, lacks: ['lacking'] }, silentMs: 2200 }
const FOLLOWER: Situation = { leads: false, heir: null, knows: true, isNewer: false, heard: HEARD, silenceMs: 120_000 }
const LEADER: Situation = { ...FOLLOWER, leads: true }

it.each<readonly [string, Situation, RegExp]>([
  ['job', FOLLOWER, /another tab leads .* heard of 2 s ago; after 120 s without news this tab/],
  ['job', { ...FOLLOWER, heard: { ...HEARD, leading: null } }, /not heard from one that leads for 2 s; after 120 s/],
  ['lacking', FOLLOWER, /leads does not know the job, and is to hand over to this one/],
  ['lacking', { ...FOLLOWER, isNewer: true }, /leads does not know the job, and it is newer than this one/],
  ['lacking', { ...FOLLOWER, knows: false }, /leads does not know the job, nor does this one/],
  ['lacking', { ...LEADER, knows: false }, /this tab leads and does not know the job/],
  ['job', { ...LEADER, heir: { isNewer: true } }, /a tab with a newer version is to lead/],
  [
    'job',
    { ...LEADER, heir: { isNewer: false } },
    /a tab that knows a job this one does not is to lead; this one only finishes/,
  ],
])('says what a run of "%s" waits for: %s', (jobName, situation, words) => {
  expect(explainWait(jobName, situation)).toMatch(words)
})

it('leaves to the engine what a tab that leads knows', () => {
  expect(explainWait('job', LEADER)).toBeNull()
})
