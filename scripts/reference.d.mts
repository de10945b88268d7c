export function reference(): { readonly text: string; readonly missing: readonly string[] }
export function committedReference(): string
