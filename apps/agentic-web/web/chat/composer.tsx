import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { Icon, StopIcon } from '../parts/icons'

interface ComposerProps {
  /** Stops what goes on; `null` when nothing does. */
  readonly onStop: (() => void) | null
  readonly isStopping?: boolean
  readonly onSend: (text: string) => void
}

const MOST_CHARACTERS = 32_000

/** Enter sends, Shift+Enter begins a new line. What is written while the agent works is queued. */
export function Composer({ onStop, isStopping = false, onSend }: ComposerProps) {
  const [text, setText] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    // On a phone it would bring up the keyboard before anything can be read.
    if (matchMedia('(hover: hover)').matches) field.current?.focus()
  }, [])

  function send(event?: FormEvent) {
    event?.preventDefault()
    if (text.trim() === '') return
    onSend(text.trim())
    setText('')
  }

  function onKeyDown(event: KeyboardEvent) {
    // While an input method composes a character, Enter is its own.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }

  return (
    <form className="composer" onSubmit={send}>
      <label className="visually-hidden" htmlFor="message">
        Message
      </label>
      <textarea
        ref={field}
        id="message"
        rows={1}
        maxLength={MOST_CHARACTERS}
        placeholder={onStop === null ? 'Ask something' : 'Say more: it is answered next'}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {onStop !== null && (
        <button
          type="button"
          className="round is-stop"
          aria-label="Stop"
          title="Stop"
          disabled={isStopping}
          onClick={onStop}
        >
          <StopIcon />
        </button>
      )}
      <button type="submit" className="round primary" aria-label="Send" title="Send" disabled={text.trim() === ''}>
        <Icon name="send" />
      </button>
    </form>
  )
}
