import type { Durably } from '@coji/durably-core'
import { Hints } from './hints'
import type { Settings } from './options'
import { createPresenter, type Presenter } from './present'
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
    streams: new Streams(settings),
    hints: new Hints(durably),
  }
}
