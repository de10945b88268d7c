import { createHash, randomBytes } from 'node:crypto'

/** 256 bits that nobody guesses. */
export function randomToken(): string {
  return randomBytes(32).toString('base64url')
}

/** What is kept of a secret that a browser has: whoever reads the database cannot use it. */
export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}
