/** Which version of the application a tab has loaded. */
export type TabVersion = string | number

/** Above 0 when `one` is newer than `other`, below when it is older. A tab without a version is older than one with. */
export function compareVersions(one: TabVersion | undefined, other: TabVersion | undefined): number {
  if (one === undefined || other === undefined) return Number(other === undefined) - Number(one === undefined)
  if (typeof one === 'number' && typeof other === 'number') return one - other
  return String(one).localeCompare(String(other), 'en', { numeric: true })
}
