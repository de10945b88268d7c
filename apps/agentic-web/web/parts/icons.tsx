const SHAPES = {
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  plus: 'M8 3v10M3 8h10',
  close: 'm4 4 8 8M12 4l-8 8',
  send: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
  down: 'M8 3v10M3.5 8.5 8 13l4.5-4.5',
  pencil: 'M9.5 3.5l3 3L6 13H3v-3l6.5-6.5Z',
  bin: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'm3 8.5 3.2 3.2L13 5',
  cross: 'm4.5 4.5 7 7M11.5 4.5l-7 7',
  hand: 'M8 2.5v6M8 11.5v1.5',
  gear: 'M2.5 5h7M12.5 5h1M2.5 11h1M6.5 11h7M11 3.5v3M5 9.5v3',
  inbox: 'M2.5 9.5v3.5h11V9.5M2.5 9.5 4.5 3h7l2 6.5M2.5 9.5h3.2l.8 1.5h3l.8-1.5h3.2',
  tool: 'M3 4h10M3 8h10M3 12h6',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  retry: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  out: 'M9.5 3.5h-6v9h6M7 8h6.5M11 5.5 13.5 8 11 10.5',
  chevron: 'm6 4 4 4-4 4',
} as const

export function Icon({ name }: { readonly name: keyof typeof SHAPES }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  )
}

export function StopIcon() {
  return (
    <svg className="icon is-filled" viewBox="0 0 16 16" aria-hidden="true">
      <rect x="4" y="4" width="8" height="8" rx="1.5" />
    </svg>
  )
}

export function Spinner() {
  return (
    <svg className="icon spinner" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M8 2a6 6 0 1 1-6 6" />
    </svg>
  )
}

export function Brand() {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true" className="brand-mark">
      <rect width="16" height="16" rx="4" />
      <path d="M4 5.5h8M4 8.5h5" />
    </svg>
  )
}
