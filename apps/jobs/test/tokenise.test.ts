import { describe, expect, test } from 'vitest'
import { tokenise } from '../src/tokenise'

describe('tokenise', () => {
  const cases: readonly [string, readonly string[]][] = [
    ['The quick, brown FOX!', ['quick', 'brown', 'fox']],
    ['ﬁnal ＡＢＣ ２０２６', ['final', 'abc', '2026']],
    ['CAFÉ cafe\u0301 café', ['café', 'café', 'café']],
    ["it's 3.14", ['s', '3', '14']],
    ['東京 タワー', ['東京', 'タワー']],
    ['हिन्दी', ['हिन्दी']],
    ['the of and', []],
    ['— … 🎁', []],
  ]
  for (const [text, words] of cases) test(text, () => expect(tokenise(text)).toEqual(words))
})
