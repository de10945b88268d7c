/** What the page did, or how it failed. */
export type Answer =
  | { readonly ok: true; readonly value: unknown; readonly ms: number }
  | {
      readonly ok: false
      readonly isOurs: boolean
      readonly code: string
      readonly message: string
      readonly ms: number
    }

export interface OpenConfig {
  readonly databasePath: string
  readonly allowMemory?: boolean
  /** How the application says what to open. Default: `sqlocal()` with this configuration. */
  readonly through?: 'client' | 'bare dialect'
}

/** What a test may ask of the page. */
export interface PageApi {
  migrate(config: OpenConfig): Promise<Answer>
  trigger(text: string): Promise<Answer>
  run(text: string): Promise<Answer>
  /** Starts the worker and a run of steps that each store a text of this length. */
  grow(steps: number, length: number): Promise<Answer>
  /** The codes of the trouble that the worker has met. */
  troubles(): readonly string[]
  runs(): Promise<Answer>
  payloadOf(id: string): Promise<Answer>
  cancel(id: string): Promise<Answer>
  remove(id: string): Promise<Answer>
  purge(): Promise<Answer>
  /** Cancels a run whose branches nobody listens to, in memory. Then rejects something that is not of it. */
  interrupt(): Promise<Answer>
  close(): Promise<Answer>
}

declare global {
  interface Window {
    readonly api: PageApi
    /** What a listener of the application heard of rejections. */
    readonly rejections: string[]
  }
}
