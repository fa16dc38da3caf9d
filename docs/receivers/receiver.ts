// Node.js 24 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 node receiver.ts
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secret = process.env.MUSTER_WEBHOOK_SECRET
// Anybody can sign with an empty one.
if (!secret) throw new Error('Set MUSTER_WEBHOOK_SECRET')

// In production: a unique column in your database.
const processed = new Set<string>()

function isGenuine(body: Buffer, signature = ''): boolean {
  const expected = Buffer.from(createHmac('sha256', secret).update(body).digest('hex'))
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  // The bytes as they came: JSON that is parsed and written again may differ.
  const body = Buffer.concat(chunks)

  if (!isGenuine(body, request.headers['x-service-signature']?.toString())) {
    response.writeHead(403).end()
    return
  }
  const delivery = JSON.parse(body.toString())
  if (!processed.has(delivery.id)) {
    processed.add(delivery.id)
    // In production: put it into a queue.
    console.log(delivery.event_type, delivery.resource.id)
  }
  response.writeHead(204).end()
})
server.listen(Number(process.env.PORT ?? 4000), '127.0.0.1')
