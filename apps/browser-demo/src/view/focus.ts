/** Where the keyboard goes on when what it was on is gone, together with all that was around it. */
export const DETAIL_ID = 'detail'

export function focusDetail(): void {
  document.getElementById(DETAIL_ID)?.focus()
}
