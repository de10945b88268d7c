/** A seed that found something once. It may tell another story by now; it is played first all the same. */
export interface CorpusSeed {
  readonly seed: number
  readonly found: string
}

export const CORPUS: readonly CorpusSeed[] = [
  { seed: 5, found: 'a run completed with what the job made of its lost lease' },
  { seed: 18, found: 'a run completed with what the job made of its lost lease, after a real step' },
  { seed: 15, found: 'a run failed with the interruption of its lost lease' },
  { seed: 1130, found: 'a trigger said that nothing was written although its first try was' },
  { seed: 2734, found: 'the late answer to a cancel() cancelled the run again that had been retried meanwhile' },
  {
    seed: 27,
    found: 'a try that had saved a checkpoint did not go on after a crash: the failure before it was the last word',
  },
  { seed: 43, found: 'a wait beside other steps ended early by the time that its claim took to arrive' },
  { seed: 135, found: 'of two children created in one commit both steps got the first' },
  { seed: 160, found: 'a stream was recorded without the chunk that its cancelled body had not waited for' },
  {
    seed: 396,
    found: 'a stream went on in the history after its start was lost with a transaction that nobody knew of',
  },
  { seed: 795, found: 'a transaction was begun again after the answer that told of a cancel' },
  { seed: 262, found: 'a retry that its worker timed began before its time by a storage whose clock was set back' },
  { seed: 403, found: 'a neighbour of a suspect was judged by what its worker held after the suspect was taken back' },
  { seed: 161, found: 'a run that also waited for its next try rested on when all its children had ended' },
  { seed: 290, found: 'the judge did not know that who claims a run that was lost too often fails it' },
]
