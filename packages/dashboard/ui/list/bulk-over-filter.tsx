import type { BulkFilter, BulkPreview } from '@coji/durably-server/client'
import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { useViewer } from '../api'
import { formatCount } from '../format'
import { Dialog } from '../parts/dialog'
import { useNotices } from '../parts/notices'
import type { BulkAction } from './bulk-actions'

interface BulkOverFilterProps {
  readonly action: BulkAction
  readonly filter: BulkFilter
  readonly onClose: () => void
}

/** To all runs that the filter finds, however many: the server does it, and shows how far it is as a run of its own. */
export function BulkOverFilter({ action, filter, onClose }: BulkOverFilterProps) {
  const { api } = useViewer()
  const { tell } = useNotices()
  const [, navigate] = useLocation()
  const [isBusy, setIsBusy] = useState(false)
  const preview = usePreview(action, filter)
  const start = async () => {
    setIsBusy(true)
    try {
      const { id } = await api.bulk(action.key, filter)
      tell('The server is at it.')
      navigate(`/runs/${id}`)
    } catch (error) {
      tell((error as Error).message, 'bad')
      onClose()
    }
  }
  return (
    <Dialog
      title={`${action.label} all runs that the filter finds?`}
      confirm={{ label: action.label, isDangerous: action.isDangerous, isBusy: isBusy || preview === null }}
      onConfirm={() => void start()}
      onClose={onClose}
    >
      <p aria-live="polite">
        {preview === null
          ? 'Counting …'
          : `It finds ${formatCount(preview.count)}${preview.isMore ? ' or more' : ''} at present. Those that it cannot be done to are passed over, and what comes from now on is left alone.`}
      </p>
      <p>{action.words}</p>
    </Dialog>
  )
}

function usePreview({ key }: BulkAction, filter: BulkFilter): BulkPreview | null {
  const { api } = useViewer()
  const { tell } = useNotices()
  const [preview, setPreview] = useState<BulkPreview | null>(null)
  const asked = JSON.stringify(filter)
  useEffect(() => {
    let isCurrent = true
    api.previewBulk(key, JSON.parse(asked)).then(
      (found) => isCurrent && setPreview(found),
      (error: Error) => isCurrent && tell(error.message, 'bad'),
    )
    return () => {
      isCurrent = false
    }
  }, [api, key, asked, tell])
  return preview
}
