import { useRead } from '@coji/durably-react'
import { useEffect, useId, useRef } from 'react'
import type { SessionDetail } from '../../src/contract'
import { agentApi } from '../api/agent-api'
import { formatBytes } from '../format'
import { Icon } from '../parts/icons'

/** The files that the agent has written here, to take with one. */
export function FilesMenu({ session: { session_id } }: { readonly session: SessionDetail }) {
  const id = useId()
  const { value: files } = useRead(`files ${session_id}`, () => agentApi.files(session_id))
  const menu = useRef<HTMLDivElement>(null)
  const isEmpty = files === null || files.length === 0
  useEffect(() => {
    if (isEmpty) menu.current?.hidePopover?.()
  }, [isEmpty])
  if (isEmpty) return null
  return (
    <>
      <button type="button" className="quiet" popoverTarget={id}>
        <Icon name="file" /> Files <span className="count">{files.length}</span>
      </button>
      <div ref={menu} id={id} popover="auto" className="menu">
        <ul aria-label="Files of this chat">
          {files.map(({ path, size }) => (
            <li key={path}>
              <a href={agentApi.fileAddress(session_id, path)} download={path.split('/').at(-1)}>
                <span className="menu-name">{path}</span> <span className="muted small">{formatBytes(size)}</span>
              </a>
            </li>
          ))}
        </ul>
      </div>
    </>
  )
}
