import type { Durably } from '@coji/durably-core'
import { Hints } from './hints'
import type { Settings } from './options'
import { createPresenter, type Presenter } from './present'
import { toProblem } from './problem'
import { Streams } from './streams'

/** What all requests share. */
export interface Server {
  readonly durably: Durably
  readonly settings: Settings
  readonly present: Presenter
  readonly streams: Streams
  readonly hints: Hints
}

export function createServer(durably: Durably, settings: Settings): Server {
  return {
    durably,
    settings,
    present: createPresenter(settings),
    streams: new Streams({ ...settings, report: reporterOf(durably) }),
    hints: new Hints(durably),
  }
}

/** What is the fault of the server, or of the application that it is in: its reader only sees the stream end. */
function reporterOf(durably: Durably): (error: unknown) => void {
  return (error) => {
    if (toProblem(error) === null) durably.reportError(error, 'answer a request')
  }
}
