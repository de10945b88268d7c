import { describe, expect, it } from 'vitest'
import { CallerPlaces, type Purpose } from '../src/drivers/caller-places'

/** How many of each get a connection at once. */
async function taken(places: CallerPlaces, wanted: readonly Purpose[]): Promise<string> {
  const tries = await Promise.allSettled(wanted.map((purpose) => places.take(purpose, 1)))
  return wanted.filter((_, index) => tries[index]?.status === 'fulfilled').join(' ')
}

describe('callers leave', () => {
  it.each<[number, readonly Purpose[], string]>([
    [1, ['transaction', 'caller'], 'transaction'],
    [2, ['transaction', 'transaction', 'caller', 'reader'], 'transaction caller'],
    [3, ['reader', 'reader', 'transaction', 'caller'], 'reader transaction'],
    [5, ['reader', 'reader', 'reader', 'reader', 'caller', 'caller'], 'reader reader reader caller'],
    [5, ['caller', 'caller', 'caller', 'caller', 'transaction', 'reader'], 'caller caller caller transaction'],
  ])('of %d connections one to each other, and the last one to commits', async (connections, wanted, expected) => {
    expect(await taken(new CallerPlaces(connections), wanted)).toBe(expected)
  })

  it('what they give back to the next one', async () => {
    const places = new CallerPlaces(3)
    const giveBack = await places.take('caller')
    await places.take('reader')
    const next = places.take('transaction')
    giveBack()
    await next
    await expect(places.take('caller', 1)).rejects.toMatchObject({ code: 'CONNECTION_HELD' })
  })
})
