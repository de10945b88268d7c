import type { Page, Response } from 'playwright'
import { misfitsOf } from '../../server/test/described'

export interface PageAnswers {
  /** So many of them were read. */
  readonly count: number
  /** Where they are not as the OpenAPI document says. */
  readonly misfits: readonly string[]
}

/** What a page is answered in JSON below an address, by a server in another process. The function that is returned looks at all of it. */
export function watchAnswers(page: Page, basePath: string): () => Promise<PageAnswers> {
  const looks: Promise<readonly string[] | null>[] = []
  page.on('response', (response) => void looks.push(misfitsIn(response, basePath)))
  return async () => {
    const found = (await Promise.all(looks)).filter((misfits) => misfits !== null)
    return { count: found.length, misfits: found.flat() }
  }
}

/** `null` of what is no such answer, or has been cut off. */
async function misfitsIn(response: Response, basePath: string): Promise<readonly string[] | null> {
  const { pathname, search } = new URL(response.url())
  const headers = new Headers(response.headers())
  const isJson = headers.get('content-type')?.includes('json') === true
  if (!pathname.startsWith(`${basePath}/`) || !isJson) return null
  const text = await response.text().catch(() => '')
  if (text === '') return null
  const answered = { status: response.status(), headers, json: JSON.parse(text) }
  return misfitsOf(`${response.request().method()} ${pathname}${search}`, answered, basePath)
}
