import { Link, useLocation } from 'wouter'
import { useViewer } from '../api'

const PLACES = [
  ['/', 'Runs'],
  ['/stats', 'Statistics'],
  ['/schedules', 'Schedules'],
  ['/workers', 'Workers'],
] as const

/** A run is one of the runs. */
function isAt(path: string, location: string): boolean {
  return path === '/' ? location === '/' || location.startsWith('/runs/') : location === path
}

export function TopBar() {
  const { me } = useViewer()
  const [location] = useLocation()
  const isThere = { '/schedules': me.schedules, '/workers': me.workers } as Readonly<Record<string, boolean>>
  const isReadOnly = me.actions.every((action) => action === 'read')
  return (
    <header className="top-bar">
      <Link href="/" className="brand">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="4" />
          <path d="M4 8.5 7 11l5-6" />
        </svg>
        durably
      </Link>
      <nav className="places" aria-label="Pages">
        {PLACES.filter(([path]) => isThere[path] ?? true).map(([path, label]) => (
          <Link key={path} href={path} aria-current={isAt(path, location) ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <div className="top-bar-end">
        {isReadOnly && <span className="badge">read-only</span>}
        {me.tenant !== null && <span className="badge">tenant {me.tenant === '' ? '(none)' : me.tenant}</span>}
        {me.actor !== null && <span className="muted small">{me.actor}</span>}
      </div>
    </header>
  )
}
