const WORD = /[\p{L}\p{N}\p{M}]+/gu

/** English words too common to tell documents apart. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  'a an and are as at be but by for from had has have in is it its not of on or that the this to was were with'.split(
    ' ',
  ),
)

/** The words of a text as they are indexed and looked up: compatibility forms folded, lower case, no stop words. */
export function tokenise(text: string): string[] {
  const words = text.normalize('NFKC').toLowerCase().match(WORD) ?? []
  return words.filter((word) => !STOP_WORDS.has(word))
}
