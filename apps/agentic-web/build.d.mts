export function buildPrograms(outDir: string): Promise<void>
