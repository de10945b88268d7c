import DOMPurify from 'dompurify'
import { Marked, type Token, type Tokens } from 'marked'
import { memo, useMemo } from 'react'
import remend from 'remend'
import { CopyButton } from '../parts/copy-button'

const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign] ?? sign)

/** HTML is shown as it is written, and a picture is a link to it: nothing is fetched because a model wrote an address. */
const markdown = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">Picture: ${escaped(text === '' ? href : text)}</a>`,
    heading({ tokens, depth }) {
      // Below the heading of the page, whatever levels a model leaves out.
      return `<h2 data-depth="${depth}">${this.parser.parseInline(tokens)}</h2>`
    },
  },
})

const ALLOWED = {
  ALLOWED_TAGS: [
    ...['p', 'br', 'strong', 'em', 'del', 'code', 'blockquote', 'ul', 'ol', 'li', 'h2', 'hr', 'a'],
    ...['table', 'thead', 'tbody', 'tr', 'th', 'td'],
  ],
  ALLOWED_ATTR: ['href', 'title', 'align', 'start', 'data-depth'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
}

const purify = DOMPurify()
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return
  node.setAttribute('target', '_blank')
  node.setAttribute('rel', 'noopener noreferrer nofollow')
})

interface MarkdownProps {
  readonly text: string
  /** What is open at its end (a code block, bold text) is closed meanwhile. */
  readonly isGrowing: boolean
}

/** What a model wrote, block by block: only the last one changes while it is written. */
export function Markdown({ text, isGrowing }: MarkdownProps) {
  const blocks = useMemo(
    () => markdown.lexer(isGrowing ? remend(text) : text).filter(({ type }) => type !== 'space'),
    [text, isGrowing],
  )
  return (
    <div className={isGrowing ? 'prose is-growing' : 'prose'}>
      {blocks.map((block, index) => (
        <Block key={index} block={block} raw={block.raw} />
      ))}
    </div>
  )
}

const Block = memo(
  function Block({ block }: { readonly block: Token; readonly raw: string }) {
    if (block.type === 'code') return <CodeBlock block={block as Tokens.Code} />
    const html = purify.sanitize(markdown.parser([block]), ALLOWED)
    return <div className="block" dangerouslySetInnerHTML={{ __html: html }} />
  },
  (before, after) => before.raw === after.raw,
)

function CodeBlock({ block: { lang, text } }: { readonly block: Tokens.Code }) {
  return (
    <figure className="code-block">
      <figcaption>
        <span>{lang === undefined || lang === '' ? 'code' : lang}</span>
        <CopyButton text={text} what="the code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within reach of the keyboard */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </figure>
  )
}
