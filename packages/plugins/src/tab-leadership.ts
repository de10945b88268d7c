import type { Durably, DurablyEvent } from '@coji/durably-core'
import type { WorkerSwitch } from '@coji/durably-core/extend'
import { startBeat, type Beat, type Leading, type Offer } from './tab-beat'
import { explainWait } from './tab-explanation'
import { createFarewells, type Farewells } from './tab-farewells'
import { createFinishing, type Finishing } from './tab-finishing'
import { createTabLock } from './tab-lock'
import { isForeign } from './tab-relay'
import { compareVersions, type TabVersion } from './tab-version'
import { onAwake, onSleep } from './tab-visibility'

export interface TabLeadershipParams {
  readonly worker: WorkerSwitch
  readonly durably: Durably
  /** Whose tabs have one leader. */
  readonly group: string
  readonly version: TabVersion | undefined
  readonly beatMs: number
  readonly silenceMs: number
  readonly onLeadership: ((isLeader: boolean) => void) | undefined
}

const DURING = 'tab leader'

/** What other tabs do that gives the leader something to run. */
const WORK = ['run:trigger', 'run:retry', 'run:signal', 'run:unpark', 'run:release', 'run:recover'] as const

/** After that what an old version has in hand is given back, to be gone on with by the newer one. */
const LONGEST_HANDOVER_MS = 5000

/** Who is to lead next. */
interface Heir {
  readonly tab: string
  readonly isNewer: boolean
  /** Beats since it was told. It may have gone meanwhile. */
  beats: number
}

/** One tab's part in it: it waits for the lock, and runs the worker while it holds it. */
export class TabLeadership {
  readonly #params: TabLeadershipParams
  readonly #lock
  readonly #beat: Beat
  readonly #farewells: Farewells
  readonly #finishing: Finishing
  readonly #offs: readonly (() => void)[]
  readonly #over: Promise<void>
  #leads = false
  #ledSince = 0
  #ended = false
  #steals = false
  #recovering: Promise<void> | null = null
  #looking: Promise<void> | null = null
  #lacks: readonly string[] = []
  #heir: Heir | null = null

  constructor(params: TabLeadershipParams) {
    const { worker, durably, group, version, beatMs, silenceMs } = params
    const { workerId } = durably.health()
    const name = `durably:leader:${group}`
    this.#params = params
    this.#farewells = createFarewells(group)
    const takeBackWord = () => this.#farewells.takeBack(workerId)
    this.#finishing = createFinishing({ group, workerId, onSeen: takeBackWord })
    const events = WORK.map((type) => durably.on(type, (event) => this.#noteWork(event)))
    // Before the lock is let go of: who gets it looks for the word.
    const offSleep = onSleep(() => this.#leave(workerId))
    // Of runs that others are to leave to it, they see that first.
    const offAwake = onAwake(() => this.#finishing.isOn || takeBackWord())
    this.#offs = [...events, offSleep, offAwake]
    this.#lock = createTabLock(name)
    this.#beat = startBeat({
      channelName: name,
      tab: workerId,
      version,
      everyMs: beatMs,
      silenceMs,
      isLeader: () => this.#leads,
      knows: (jobName) => worker.knows(jobName),
      lacks: () => this.#lacks,
      onBeat: () => this.#look(),
      onFollow: (leading) => this.#hasten(leading),
      onOffer: (offer) => this.#consider(offer),
      onTake: () => this.#steal(),
      onSilence: () => this.#steal(),
    })
    worker.explain((jobName) => this.#explain(jobName))
    this.#over = this.#takePart()
  }

  /** Resolves when the lock is free for the next tab. */
  async end(): Promise<void> {
    this.#ended = true
    for (const off of this.#offs) off()
    this.#beat.end()
    this.#lock.release()
    this.#finishing.end()
    this.#tell(false)
    await this.#over
  }

  async #takePart(): Promise<void> {
    while (!this.#ended) {
      const steal = this.#steals
      this.#steals = false
      try {
        const end = await this.#lock.hold({ steal, onHeld: () => void this.#lead() })
        if (end !== 'stolen') continue
        this.#tell(false)
        if (!this.#finishing.isOn) await this.#params.worker.stop({ timeout: 0 })
      } catch (error) {
        this.#params.durably.reportError(error, DURING)
        return
      }
    }
  }

  async #lead(): Promise<void> {
    this.#heir = null
    this.#lacks = []
    this.#ledSince = performance.now()
    this.#tell(true)
    this.#beat.send()
    await this.#recoverOthers()
    if (this.#leads && this.#heir === null) this.#takeRuns()
    await this.#lookForUnknown()
  }

  #takeRuns(): void {
    this.#finishing.end()
    this.#params.worker.start()
  }

  /** Gives the waiting up and asks for the lock in another way. */
  #steal(): void {
    if (this.#leads || this.#ended) return
    this.#steals = true
    this.#lock.release()
  }

  /** The page goes away, or to sleep: whoever finds its runs is to know that it did not crash. */
  #leave(workerId: string): void {
    if (this.#params.durably.health().worker !== 'stopped') this.#farewells.leave(workerId)
  }

  #look(): void {
    void this.#recoverOthers()
    void this.#lookForUnknown()
    const heir = this.#heir
    if (heir === null || heir.beats === NOT_TOLD) return
    heir.beats += 1
    if (heir.beats <= 2) return
    this.#heir = null
    this.#takeRuns()
  }

  /**
   * There is one leader, so nobody else who owns a run is alive, or may be. Looked for with every beat: what a dying tab
   * had sent can arrive after the first look.
   */
  #recoverOthers(): Promise<void> {
    this.#recovering ??= this.#takeFromOthers().finally(() => {
      this.#recovering = null
    })
    return this.#recovering
  }

  async #takeFromOthers(): Promise<void> {
    const { durably } = this.#params
    try {
      const { workerId } = durably.health()
      const running = await durably.getRuns({ status: 'running' })
      const owners = new Set(running.flatMap(({ ownerId }) => ownerId ?? []))
      this.#farewells.sweep(owners)
      const finishing = await this.#finishing.workers()
      for (const owner of owners) {
        if (owner === workerId || finishing.has(owner)) continue
        if (this.#leads) await durably.recover({ workerId: owner, crashed: !this.#farewells.has(owner) })
      }
    } catch (error) {
      if (!this.#ended) durably.reportError(error, DURING)
    }
  }

  /** Tells the others which due runs wait for somebody who knows their jobs. */
  #lookForUnknown(): Promise<void> {
    this.#looking ??= this.#tellUnknown().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  async #tellUnknown(): Promise<void> {
    const { worker, durably } = this.#params
    if (!this.#leads) return
    try {
      const lacks = await worker.unknownJobs()
      if (!this.#leads) return
      this.#lacks = lacks
      if (lacks.length > 0) this.#beat.send()
    } catch (error) {
      if (!this.#ended) durably.reportError(error, DURING)
    }
  }

  /** The newest version leads, and of the same version whoever is needed; each of those for one beat at least. */
  #consider({ tab, version, knows }: Offer): void {
    const distance = compareVersions(version, this.#params.version)
    if (distance > 0) {
      if (this.#heir?.isNewer !== true) void this.#handOver({ tab, isNewer: true, beats: NOT_TOLD })
      return
    }
    const hasHadItsTurn = performance.now() - this.#ledSince >= this.#params.beatMs
    const isNeeded = distance === 0 && knows.some((jobName) => this.#lacks.includes(jobName))
    if (isNeeded && hasHadItsTurn && this.#heir === null) {
      void this.#handOver({ tab, isNewer: false, beats: NOT_TOLD })
    }
  }

  async #handOver(heir: Heir): Promise<void> {
    const { worker, durably } = this.#params
    this.#heir = heir
    try {
      if (heir.isNewer) await worker.stop({ timeout: LONGEST_HANDOVER_MS })
      else await this.#finishInHand()
    } catch (error) {
      durably.reportError(error, DURING)
    }
    if (!this.#leads || this.#heir !== heir) return
    heir.beats = 0
    this.#beat.handTo(heir.tab)
  }

  /** Resolves when the lead can go to another tab, while this one goes on with what it has in hand. */
  async #finishInHand(): Promise<void> {
    const { worker, durably } = this.#params
    const finished = worker.finish()
    await this.#finishing.begin()
    void finished.then(() => {
      if (durably.health().worker === 'stopped') this.#finishing.end()
    })
  }

  /** Not even what is in hand is for the code that a newer leader has replaced. */
  #hasten(leading: Leading): void {
    const { worker, version } = this.#params
    if (!this.#finishing.isOn || compareVersions(leading.version, version) <= 0) return
    void worker.stop({ timeout: LONGEST_HANDOVER_MS })
  }

  #noteWork(event: DurablyEvent): void {
    if (!this.#leads) return
    const { worker } = this.#params
    const isNews = 'jobName' in event && !worker.knows(event.jobName) && !this.#lacks.includes(event.jobName)
    if (isNews) void this.#lookForUnknown()
    if (isForeign(event) && this.#heir === null) worker.start()
  }

  #explain(jobName: string): string | null {
    const { worker, version, silenceMs } = this.#params
    const heard = this.#beat.heard()
    return explainWait(jobName, {
      leads: this.#leads,
      heir: this.#heir,
      knows: worker.knows(jobName),
      isNewer: compareVersions(heard.leading?.version, version) > 0,
      heard,
      silenceMs,
    })
  }

  #tell(leads: boolean): void {
    if (this.#leads === leads) return
    this.#leads = leads
    try {
      this.#params.onLeadership?.(leads)
    } catch (error) {
      this.#params.durably.reportError(error, 'onLeadership')
    }
  }
}

const NOT_TOLD = -1
