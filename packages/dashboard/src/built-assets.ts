import type { Assets } from './assets'

/** The build puts the page in the place of this file. */
export const BUILT_ASSETS: Assets | null = null
