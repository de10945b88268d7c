/** A file of the built page. */
export interface Asset {
  readonly type: string
  readonly text: string
}

/** The built page: its files by their paths, `index.html` among them. */
export type Assets = Readonly<Record<string, Asset>>
