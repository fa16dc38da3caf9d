// Node.js 24 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 node receiver.ts
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secret = process.env.MUSTER_WEBHOOK_SECRET
// Anyone can sign with an empty secret.
if (!secret) throw new Error('Set MUSTER_WEBHOOK_SECRET')

// In production, use a unique column in your database.
const processed = new Set<string>()

function isValidSignature(body: Buffer, signature = ''): boolean {
  const expected = Buffer.from(createHmac('sha256', secret).update(body).digest('hex'))
  const actual = Buffer.from(signature)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  // Verify the raw bytes: JSON that was parsed and serialized again can differ.
  const body = Buffer.concat(chunks)

  if (!isValidSignature(body, request.headers['x-service-signature']?.toString())) {
    response.writeHead(403).end()
    return
  }
  const delivery = JSON.parse(body.toString())
  if (!processed.has(delivery.id)) {
    processed.add(delivery.id)
    // In production, enqueue the delivery here.
    console.log(delivery.event_type, delivery.resource.id)
  }
  response.writeHead(204).end()
})
server.listen(Number(process.env.PORT ?? 4000), '127.0.0.1')
