/** The service that the programs of this folder call. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Muster, newAccount, newMuster, waitForDocument } from '../cli/muster.ts'
import { startReceiver } from '../receiver.ts'

/** A status that no contract knows. */
export const NEW_STATUS = 'frozen'

/** An event type that no contract knows, for participants. */
export const NEW_EVENT_TYPE = 'participant.frozen'

const SETTINGS = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }

export interface Service extends AsyncDisposable {
  url: string
  /** The URL of a proxy that gives each participant `NEW_STATUS`, and the events about participants
   *  `NEW_EVENT_TYPE`. */
  proxyUrl: string
  /** Creates an account, because each user has a rate limit. Returns a Full Access key of its
   *  Owner. */
  newKey(name: string): Promise<string>
  /** Returns the body of the delivery for a new participant. */
  receiveDelivery(): Promise<string>
}

/** Starts `muster serve` in embedded mode on a free loopback port. */
export async function startService(): Promise<Service> {
  const muster = await newMuster()
  const serving = muster.start(['serve', '--json'], {
    environment: { ...SETTINGS, PORT: '0', LOG_LEVEL: 'warn' },
  })
  // Without this listener a signal would leave the service running.
  process.once('exit', () => serving.process.kill())
  const { url } = await waitForDocument(serving)
  const proxy = await startProxy(url)
  return {
    url,
    proxyUrl: urlOf(proxy),
    newKey: async (name) => (await newOwner(muster, name)).key,
    receiveDelivery: () => receiveDelivery(muster, url),
    async [Symbol.asyncDispose]() {
      proxy.close()
      await muster[Symbol.asyncDispose]()
    },
  }
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A new account, and a Full Access key of its Owner. */
async function newOwner(muster: Muster, name: string): Promise<{ accountId: string; key: string }> {
  const email = `${name.replace(/\W+/g, '-')}@example.com`
  const { account_id: accountId } = await newAccount(muster, name, email)
  const options = ['--email', email, '--name', 'Test', '--access', 'full_access']
  const { token } = await muster.json(['key', 'create', ...options])
  return { accountId, key: token }
}

/** Forwards GET requests, and changes the statuses and event types of participants in the
 *  response. */
async function startProxy(target: string): Promise<Server> {
  const proxy = createServer(async ({ url, headers: { authorization = '' } }, response) => {
    const original = await fetch(target + url, { headers: { authorization } })
    const body = (await original.text())
      .replaceAll(/"status":"\w+"/g, `"status":"${NEW_STATUS}"`)
      .replaceAll(/"event_type":"participant\.\w+"/g, `"event_type":"${NEW_EVENT_TYPE}"`)
    response.writeHead(original.status, { 'Content-Type': 'application/json' }).end(body)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return proxy
}

async function receiveDelivery(muster: Muster, url: string): Promise<string> {
  await using receiver = await startReceiver()
  const { accountId, key } = await newOwner(muster, 'delivery')
  const webhook = ['--account', accountId, '--url', receiver.url, '--events', '*']
  await muster.json(['webhook', 'create', ...webhook], { environment: SETTINGS })
  await fetch(`${url}/public/v1/participants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: '{"full_name":"Ada Lovelace"}',
  })
  const [request] = await receiver.received(1)
  return String(request?.body)
}
