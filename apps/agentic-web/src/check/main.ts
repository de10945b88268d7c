export {}

/** For health checks of containers: ends with 0 when the process beside it says that it is ready. */
const port = process.env['HEALTH_PORT'] || process.env['PORT'] || '8080'
const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)
process.exitCode = answer?.ok === true ? 0 : 1
