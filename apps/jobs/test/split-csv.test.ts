import { describe, expect, test } from 'vitest'
import { splitCsv } from '../src/split-csv'

const all = (text: string) => splitCsv(text, { limit: 1_000, isLast: true }).items

describe('splitCsv', () => {
  const cases: readonly [string, string, readonly (readonly string[])[]][] = [
    [
      'plain fields',
      'a,b\nc,d\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'CRLF',
      'a,b\r\nc,d\r\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'no line end at the end',
      'a,b\nc,d',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'empty fields',
      ',\r\na,\r\n,b',
      [
        ['', ''],
        ['a', ''],
        ['', 'b'],
      ],
    ],
    ['commas in quotes', '"a,b",c\n', [['a,b', 'c']]],
    ['doubled quotes', '"say ""hi""",""""\n', [['say "hi"', '"']]],
    ['an empty quoted field', '"",a\n', [['', 'a']]],
    [
      'line ends in quotes',
      '"a\nb","c\r\nd"\r\ne,f\n',
      [
        ['a\nb', 'c\r\nd'],
        ['e', 'f'],
      ],
    ],
    ['a quote inside a plain field', '5" pipe,"x"\n', [['5" pipe', 'x']]],
    ['text after a closing quote', '"a"b,c\n', [['ab', 'c']]],
    ['blank lines', '\n\r\na,b\n\n', [['a', 'b']]],
    ['spaces are kept', ' a , b\n', [[' a ', ' b']]],
    ['an unclosed quote at the end', 'a,"b\nc', [['a', 'b\nc']]],
    ['other scripts', '東京,🎁\n', [['東京', '🎁']]],
  ]
  for (const [name, text, records] of cases) test(name, () => expect(all(text)).toEqual(records))

  test('stops at the limit and says where it stopped', () => {
    expect(splitCsv('a,b\nc,d\n', { limit: 1, isLast: true })).toEqual({ items: [['a', 'b']], consumed: 4 })
  })

  test('a text cut anywhere gives the same records as the whole', () => {
    const text = 'a,"b ""1""\r\n2",c\r\n\r\n"x",,\n"",5" pipe,"y,z"\r\nlast,one,here'
    const whole = all(text)
    for (let cut = 0; cut <= text.length; cut++) {
      const head = splitCsv(text.slice(0, cut), { limit: 100, isLast: false })
      expect([...head.items, ...all(text.slice(head.consumed))], `cut at ${cut}`).toEqual(whole)
    }
  })
})
