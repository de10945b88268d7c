import { createServer } from 'node:http'
import { openShop } from './shop.js'

const { durably, order } = await openShop()

async function take(request, response) {
  let item = ''
  for await (const chunk of request) item += chunk
  const { id } = await order.trigger({ item: item || 'something' })
  response.writeHead(202).end(`${id}\n`)
}

/** What happened so far and then what happens, wherever it does, until the order is done. */
async function follow(id, response) {
  const events = durably.subscribe(id)
  response.once('close', () => void events.cancel().catch(() => {}))
  for await (const event of events) response.write(`${JSON.stringify(event)}\n`)
  response.end()
}

async function answer(request, response) {
  const [, first, id] = new URL(request.url, 'http://localhost').pathname.split('/')
  if (first === 'orders' && request.method === 'POST') return take(request, response)
  if (first === 'orders' && id !== undefined) return follow(id, response)
  if (first === '') return response.end(`${JSON.stringify(await durably.counts())}\n`)
  return response.writeHead(404).end('Not found\n')
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    if (!response.headersSent) response.writeHead(error.code === 'NOT_FOUND' ? 404 : 500)
    response.end(`${error.message}\n`)
  })
}).listen(Number(process.env.PORT ?? 8080), 'localhost', () => {
  console.log(`http://localhost:${server.address().port}/ is process ${process.pid}`)
})

process.on('SIGINT', () => {})
process.once('SIGTERM', async () => {
  server.close()
  await durably.close()
  server.closeAllConnections()
})
