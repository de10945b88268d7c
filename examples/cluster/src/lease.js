/** Short, so that one need not wait long for what happens. */
export const LEASE_MS = 4500
