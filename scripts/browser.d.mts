export function findBrowser(): string | null
export function findHeadlessShell(): string | null
export function findFirefox(): string | null
export function requireBrowser(): string
export const HOW_TO_GET_ONE: string
export function installBrowser(): Promise<number>
