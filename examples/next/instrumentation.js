/** Once for each server, before the first request: the worker works in the server's own process. */
export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  const { durably } = await import('./lib/durably.js')
  await durably.migrate()
  durably.start()
}
