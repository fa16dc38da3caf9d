/** A name server on loopback. */
import { createSocket } from 'node:dgram'
import { isIPv4 } from 'node:net'
import packet, { type Answer, type DecodedPacket } from 'dns-packet'
import { type Lookup, newNameLookup } from '../webhooks/transport/name-lookup.ts'

/** What a name resolves to: IP addresses of both families, an alias with IP addresses, an error, or
 *  no response at all. */
type Resolution = string[] | { cname: string; addresses: string[] } | 'no such name' | 'silence'

/** Resolves a name. `lookup` counts the earlier look-ups of the name; `type` is `A` or `AAAA`. */
export type Zone = (name: string, lookup: number, type: string) => Resolution

export interface NameServer extends AsyncDisposable {
  /** `IP:port` */
  address: string
  /** Resolves names with the hosts file and this server. */
  lookup: Lookup
  /** The number of look-ups. Counts queries for IPv4 addresses only: a look-up has one for each
   *  family. */
  lookUps(): number
}

const NXDOMAIN = 3

export async function startNameServer(zone: Zone): Promise<NameServer> {
  const server = createSocket('udp4')
  const queryCounts = new Map<string, number>()
  let lookUps = 0

  server.on('message', (message, { port, address }) => {
    const query = packet.decode(message)
    const [question] = query.questions ?? []
    if (!question) return
    // Counted by type, because the two queries of one look-up have the same number.
    const key = `${question.type} ${question.name}`
    const number = queryCounts.get(key) ?? 0
    queryCounts.set(key, number + 1)
    if (question.type === 'A') lookUps++
    const resolution = zone(question.name, number, question.type)
    if (resolution !== 'silence') server.send(responseTo(query, resolution), port, address)
  })
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
  const address = `127.0.0.1:${server.address().port}`
  return {
    address,
    lookup: newNameLookup({ servers: [address] }),
    lookUps: () => lookUps,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function responseTo(
  { id, questions = [] }: DecodedPacket,
  resolution: Exclude<Resolution, 'silence'>,
): Buffer {
  const [question] = questions
  const name = question?.name ?? ''
  if (resolution === 'no such name')
    return packet.encode({
      id,
      type: 'response',
      flags: packet.RECURSION_DESIRED | NXDOMAIN,
      questions,
    })
  const { cname, addresses } = Array.isArray(resolution) ? { addresses: resolution } : resolution
  const answers: Answer[] = addresses
    .filter((address) => isIPv4(address) === (question?.type === 'A'))
    .map((data) => ({ type: isIPv4(data) ? 'A' : 'AAAA', name: cname ?? name, ttl: 0, data }))
  if (cname) answers.unshift({ type: 'CNAME', name, ttl: 0, data: cname })
  return packet.encode({
    id,
    type: 'response',
    flags: packet.RECURSION_DESIRED,
    questions,
    answers,
  })
}
