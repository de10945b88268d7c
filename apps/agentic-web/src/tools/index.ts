import { calculator } from './calculator'
import { createFetchPage } from './fetch-page'
import { listFiles, readFile, writeFile } from './files'
import { createPostJson } from './post-json'
import type { AnyTool } from './tool'

/** What the agent can call without a sandbox. */
export function plainTools({ fetchHosts }: { readonly fetchHosts: readonly string[] }): readonly AnyTool[] {
  const fetching = fetchHosts.length === 0 ? [] : [createFetchPage(fetchHosts), createPostJson(fetchHosts)]
  return [calculator, listFiles, readFile, writeFile, ...fetching]
}
