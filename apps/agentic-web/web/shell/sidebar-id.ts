/** On a phone the sidebar is a popover: the browser opens it, closes it with Escape and a tap beside it. */
export const SIDEBAR_ID = 'sidebar'
