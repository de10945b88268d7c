import { type ReactNode, useEffect, useId, useRef } from 'react'

interface DialogProps {
  readonly title: string
  readonly children: ReactNode
  readonly confirm: { readonly label: string; readonly isDangerous?: boolean; readonly isBusy?: boolean }
  readonly onConfirm: () => void
  readonly onClose: () => void
}

/** Asks, in the browser's own dialog: it keeps the focus, and Escape leaves it. */
export function Dialog({ title, children, confirm, onConfirm, onClose }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const { current } = ref
    if (current !== null && !current.open) current.showModal()
    return () => current?.close()
  }, [])
  return (
    <dialog ref={ref} aria-labelledby={titleId} onCancel={onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          onConfirm()
        }}
      >
        <h2 id={titleId}>{title}</h2>
        {children}
        <div className="button-row is-end">
          <button type="button" onClick={onClose}>
            Never mind
          </button>
          <button type="submit" className={confirm.isDangerous ? 'danger' : 'primary'} disabled={confirm.isBusy}>
            {confirm.label}
          </button>
        </div>
      </form>
    </dialog>
  )
}
