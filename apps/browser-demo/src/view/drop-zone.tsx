import { type DragEvent, useEffect, useId, useState } from 'react'

interface DropZoneProps {
  readonly isBusy: boolean
  readonly onFile: (file: File) => void
}

/** Takes a CSV: dropped, or chosen with a mouse or the keyboard. */
export function DropZone({ isBusy, onFile }: DropZoneProps) {
  const [isOver, setIsOver] = useState(false)
  const id = useId()
  useEffect(refuseOtherDrops, [])
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    const file = event.dataTransfer.files[0]
    if (file !== undefined && !isBusy) onFile(file)
  }
  const over = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(!isBusy)
  }
  return (
    <label
      className={`drop-zone${isOver ? ' is-over' : ''}${isBusy ? ' is-busy' : ''}`}
      htmlFor={id}
      onDragOver={over}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
    >
      <input
        id={id}
        type="file"
        accept=".csv,text/csv"
        className="visually-hidden"
        disabled={isBusy}
        onChange={(event) => {
          const file = event.target.files?.[0]
          event.target.value = ''
          if (file !== undefined) onFile(file)
        }}
      />
      <strong>Drop a CSV of orders</strong>
      <span className="muted small">or choose a file</span>
    </label>
  )
}

/** A file that misses the zone would take the place of the page. */
function refuseOtherDrops(): () => void {
  const refuse = (event: Event) => event.preventDefault()
  for (const type of ['dragover', 'drop']) addEventListener(type, refuse)
  return () => {
    for (const type of ['dragover', 'drop']) removeEventListener(type, refuse)
  }
}
