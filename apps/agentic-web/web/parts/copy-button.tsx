import { Icon } from './icons'
import { useNotices } from './notices'

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const { tell } = useNotices()
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      tell(`Copied ${what}.`)
    } catch {
      tell('The browser does not let this page copy.', 'bad')
    }
  }
  return (
    <button type="button" className="quiet copy" aria-label={`Copy ${what}`} title="Copy" onClick={copy}>
      <Icon name="copy" />
    </button>
  )
}
