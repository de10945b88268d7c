import type { Storage } from '@coji/durably-core'

/**
 * Tabs on one database are one group, whatever they are called: a leader takes back the runs of everybody else. Only where
 * the storage does not say where its data is the name has to tell.
 */
export function groupOf({ location }: Storage, name: string): string {
  return location ?? name
}
