import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright'
import { PATIENCE_MS } from '../../../test/pace'
import { chromiumOptions } from '../../../test/chromium'

/** Runs `use` with the path of a fresh profile, which is removed afterwards. */
export async function withProfile<T>(use: (profile: string) => Promise<T>): Promise<T> {
  const profile = await mkdtemp(join(tmpdir(), 'durably-profile-'))
  try {
    return await use(profile)
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

export type ContextOptions = NonNullable<Parameters<typeof chromium.launchPersistentContext>[1]>

/** Runs `use` with a browser of a fresh profile, kept on the disk as a person's. */
export function withBrowser<T>(use: (context: BrowserContext) => Promise<T>, options: ContextOptions = {}): Promise<T> {
  return withProfile(async (profile) => {
    const context = await chromium.launchPersistentContext(profile, { ...chromiumOptions(), ...options })
    context.setDefaultTimeout(PATIENCE_MS)
    try {
      return await use(context)
    } finally {
      await context.close()
    }
  })
}
