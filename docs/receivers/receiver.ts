// Node.js 24 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 node receiver.ts
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'

interface Delivery {
  id: string
  event_type: string
  resource: { type: string; id: string }
}

const MAX_BODY_BYTES = 1024 * 1024
const TOLERANCE_SECONDS = 5 * 60

// Both secrets are valid while you rotate them. Ignore empty ones: anyone can sign with them.
const secrets = [process.env.MUSTER_WEBHOOK_SECRET, process.env.MUSTER_WEBHOOK_NEXT_SECRET].filter(
  (secret): secret is string => Boolean(secret),
)
if (secrets.length === 0) throw new Error('Set MUSTER_WEBHOOK_SECRET')

// In production, use a unique column in your database.
const processedIds = new Set<string>()

function isEqual(actual: unknown, expected: string): boolean {
  const [left, right] = [Buffer.from(String(actual ?? '')), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** X-Service-Signature signs the body. webhook-signature signs ID, time and body. */
function isSigned(secret: string, { headers }: IncomingMessage, body: Buffer): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  const timedSignature = createHmac('sha256', key)
    .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`)
    .update(body)
    .digest('base64')
  return (
    isEqual(headers['x-service-signature'], signature) &&
    isEqual(headers['webhook-signature'], `v1,${timedSignature}`)
  )
}

/** An older delivery may be a replay. */
function isRecent({ headers }: IncomingMessage): boolean {
  const ageSeconds = Date.now() / 1000 - Number(headers['webhook-timestamp'])
  return Math.abs(ageSeconds) <= TOLERANCE_SECONDS
}

/** Returns the status of the response. */
async function receive(request: IncomingMessage): Promise<number> {
  if (request.method !== 'POST') return 405
  const chunks: Buffer[] = []
  let byteCount = 0
  for await (const chunk of request) {
    byteCount += chunk.length
    if (byteCount <= MAX_BODY_BYTES) chunks.push(chunk)
  }
  if (byteCount > MAX_BODY_BYTES) return 413

  // Verify the raw bytes: JSON that was parsed and serialized again can differ.
  const body = Buffer.concat(chunks)
  if (!isRecent(request) || !secrets.some((secret) => isSigned(secret, request, body))) return 403

  const delivery: Delivery = JSON.parse(body.toString())
  if (!processedIds.has(delivery.id)) {
    processedIds.add(delivery.id)
    // In production, enqueue the delivery here.
    console.log(delivery.event_type, delivery.resource.id)
  }
  return 204
}

// The timeout ends uploads that a sender does not finish.
const server = createServer({ requestTimeout: 10_000 }, async (request, response) => {
  const status = await receive(request).catch((error: Error) => {
    console.error(error.message)
    return 400
  })
  response.writeHead(status, { Allow: 'POST' }).end()
})
server.listen(Number(process.env.PORT ?? 4000), '127.0.0.1')
