/** Seeded faults of deliveries and of their signatures. */
import { randomUUID } from 'node:crypto'
import type { Contract } from '../../../scripts/model/contract.ts'
import {
  type Delivery,
  type DeliveryHeader,
  listDeliveryHeaders,
  signDelivery,
} from '../../../scripts/words/deliveries.ts'
import type { Deliver, DeliveryHook } from '../delivery-proxy.ts'
import { parseObject } from '../faulty-proxy.ts'
import { assertFound, type Category, type SeededFault } from '../seeded-fault.ts'

const HOUR_SECONDS = 3600
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 'x').toString('base64')}`

type SignatureWords = NonNullable<DeliveryHeader['x-signature']>
type Change = (delivery: Delivery) => Partial<Delivery>

export function deliveryFaults(contract: Contract): SeededFault[] {
  const operation = assertFound(contract.operations.find(({ emits }) => emits.length > 0))
  const fault = (category: Category, what: string, deliveryHook: DeliveryHook): SeededFault => ({
    category,
    what,
    operation,
    hooks: {},
    deliveryHook,
  })
  const specs = listDeliveryHeaders(contract)
  return [
    ...attemptFaults(specs).map(([what, hook]) => fault('deliveries', what, hook)),
    ...bodyFaults(specs).map(([what, hook]) => fault('deliveries', what, hook)),
    ...signatureFaults(specs).map(([what, hook]) => fault('signatures', what, hook)),
  ]
}

type NamedFault = [string, DeliveryHook]

/** Changes each delivery, and signs it again. */
const changeDelivery =
  (specs: DeliveryHeader[], change: Change): DeliveryHook =>
  (delivery, deliver, secret) =>
    deliver(sign(specs, { ...delivery, ...change(delivery) }, secret))

function sign(specs: DeliveryHeader[], delivery: Delivery, secret: string): Delivery {
  const headers = { ...delivery.headers }
  for (const { name, 'x-signature': signature } of specs)
    if (signature) headers[name] = signDelivery(signature, secret, { ...delivery, headers })
  return { ...delivery, headers }
}

const withHeader = (name: string, value: (delivery: Delivery) => string): Change => {
  return (delivery) => ({ headers: { ...delivery.headers, [name]: value(delivery) } })
}

const withBody = (change: (payload: Record<string, unknown>) => object): Change => {
  return ({ body }) => ({ body: JSON.stringify(change(parseObject(body))) })
}

/** Faults of attempts: their number, times and method, and what differs between them. */
function attemptFaults(specs: DeliveryHeader[]): NamedFault[] {
  const { name: idHeader } = assertFound(specs.find((one) => one['x-equals'] === 'payload.id'))
  const withNewId = (delivery: Delivery): Delivery => {
    const id = randomUUID()
    return {
      ...delivery,
      headers: { ...delivery.headers, [idHeader]: id },
      body: JSON.stringify({ ...parseObject(delivery.body), id }),
    }
  }
  /** Changes each attempt of a delivery but the first. */
  const changeLaterAttempts = (change: (delivery: Delivery) => Delivery): DeliveryHook => {
    const seen = new Set<string>()
    return (delivery, deliver, secret) => {
      const id = delivery.headers[idHeader] ?? ''
      if (seen.has(id)) return deliver(sign(specs, change(delivery), secret))
      seen.add(id)
      return deliver(delivery)
    }
  }
  return [
    ['delivers nothing', async () => 204],
    [
      'delivers each event twice',
      async (delivery, deliver) => {
        await deliver(delivery)
        return await deliver(delivery)
      },
    ],
    // The service believes that each attempt succeeded.
    ['does not try again', async (delivery, deliver) => Math.min(204, await deliver(delivery))],
    [
      'tries again immediately',
      async (delivery, deliver) => {
        const status = await deliver(delivery)
        return status < 300 ? status : await deliver(delivery)
      },
    ],
    ['gives each attempt another ID', changeLaterAttempts(withNewId)],
    [
      'sends another body with the second attempt',
      changeLaterAttempts((delivery) => ({ ...delivery, body: `${delivery.body} ` })),
    ],
    ['sends PUT', changeDelivery(specs, () => ({ method: 'PUT' }))],
  ]
}

/** Faults of headers and of the body. The signatures are right. */
function bodyFaults(specs: DeliveryHeader[]): NamedFault[] {
  const named = (fits: (header: DeliveryHeader) => boolean) => assertFound(specs.find(fits)).name
  const time = named((header) => header['x-time-of'] !== undefined)
  const trace = named((header) => header['x-trace-of'] !== undefined)
  const id = named((header) => header['x-equals'] === 'payload.id')
  const event = named((header) => header['x-equals'] === 'event.id')
  const faults: [string, Change][] = [
    ['sends another media type', withHeader('content-type', () => 'text/plain')],
    ['sends another User-Agent', withHeader('user-agent', () => 'node')],
    ['sends the ID of another event', withHeader(event, () => randomUUID())],
    ['sends another ID in the header', withHeader(id, () => randomUUID())],
    [
      'sends an old time',
      withHeader(time, ({ headers }) => String(Number(headers[time]) - HOUR_SECONDS)),
    ],
    [
      'sends the time in milliseconds',
      withHeader(time, ({ headers }) => String(Number(headers[time]) * 1000)),
    ],
    [
      'starts a trace of its own',
      withHeader(trace, () => `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`),
    ],
    ['sends no trace', withHeader(trace, () => '')],
    [
      'sends another type',
      withBody((payload) => ({ ...payload, event_type: `${payload.event_type}.v2` })),
    ],
    [
      'sends the ID of another record',
      withBody((payload) => ({
        ...payload,
        resource: { ...(payload.resource as object), id: randomUUID() },
      })),
    ],
    ['sends other data', withBody((payload) => ({ ...payload, data: { more: true } }))],
    ['sends an additional field', withBody((payload) => ({ ...payload, created_at: 'now' }))],
    ['sends a form', () => ({ body: 'event=1' })],
  ]
  return faults.map(([what, change]) => [what, changeDelivery(specs, change)])
}

/** Faults of all signatures together, and of each alone. */
function signatureFaults(specs: DeliveryHeader[]): NamedFault[] {
  const signed = specs.flatMap(({ name, 'x-signature': signature }) =>
    signature ? [{ name, signature }] : [],
  )
  const each = (
    what: string,
    value: (signature: SignatureWords, delivery: Delivery, secret: string) => string,
  ): NamedFault[] =>
    signed.map(({ name, signature }) => [
      `${what} in ${name}`,
      (delivery: Delivery, deliver: Deliver, secret: string) =>
        deliver({
          ...delivery,
          headers: { ...delivery.headers, [name]: value(signature, delivery, secret) },
        }),
    ])
  return [
    [
      'signs with another secret',
      (delivery, deliver) => deliver(sign(specs, delivery, OTHER_SECRET)),
    ],
    [
      'formats the body after it was signed',
      (delivery, deliver) =>
        deliver({ ...delivery, body: JSON.stringify(parseObject(delivery.body), null, 2) }),
    ],
    ...each('omits the signature', () => ''),
    ...each('signs with the wrong form of the secret', (signature, delivery, secret) => {
      const encoding = signature.key.encoding === 'utf8' ? 'base64' : 'utf8'
      return signDelivery({ ...signature, key: { ...signature.key, encoding } }, secret, delivery)
    }),
    ...each('writes the signature in another encoding', (signature, delivery, secret) => {
      const encoding = signature.encoding === 'hex' ? 'base64' : 'hex'
      return signDelivery({ ...signature, encoding }, secret, delivery)
    }),
    ...each('signs other content', (signature, delivery, secret) =>
      signDelivery({ ...signature, content: `${signature.content}.` }, secret, delivery),
    ),
    ...each('signs an empty body', (signature, delivery, secret) =>
      signDelivery(signature, secret, { ...delivery, body: '' }),
    ),
  ]
}
