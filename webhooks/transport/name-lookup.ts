/** Looks up the IP addresses of host names: first in the hosts file, then with c-ares. `dns.lookup`
 *  would take a thread of libuv for as long as a name server is silent. Each account has few
 *  look-ups at once, so that a silent name server delays only the accounts that use it. */
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Turns } from '../../runtime/turns.ts'

/** Calls back like `dns.lookup` with the option `all`. The list is empty if the name has IP
 *  addresses, but none of `family`. */
export type Lookup = (
  hostname: string,
  options: Pick<LookupAllOptions, 'family'> & { accountId: string },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

interface NameLookupOptions {
  hostsFile?: string
  /** By default those of resolv.conf. */
  servers?: string[]
}

const TIMEOUT_MS = 2_000
const TRIES = 3
/** How long a look-up that has the IPv4 or the IPv6 addresses of a name waits for the others. */
const OTHER_FAMILY_MS = 1_000
/** After this time, a new resolver replaces the old one, and reads resolv.conf again. */
const RESOLVER_LIFETIME_MS = 30_000
/** The hosts file is read again after this time. */
const HOSTS_LIFETIME_MS = 5_000
/** A failure is remembered for as long as its look-up took, but at least this long, so that the
 *  deliveries of a webhook do not repeat it. */
const MIN_FAILURE_LIFETIME_MS = 2_000
const MAX_FAILURES = 10_000
/** The most concurrent look-ups of one account at name servers. Others wait for their turn. */
const MAX_LOOKUPS = 8

/** Returns a function that looks up names. It calls back with the error ENOTFOUND for a name
 *  without an IP address, and EAI_AGAIN when no name server could tell. Search domains are not
 *  used. Concurrent look-ups of one name for one account share their queries. */
export function newNameLookup(options: NameLookupOptions = {}): Lookup {
  const findInHosts = hostsReader(options.hostsFile ?? '/etc/hosts')
  const resolve = resolverOf(options.servers)
  const inTurn = turnsByAccount()
  const running = new Map<string, Promise<LookupAddress[]>>()
  const failures = new Map<string, { error: Error; untilMs: number }>()

  function throwRecentFailure(name: string): void {
    const failure = failures.get(name)
    if (failure && performance.now() < failure.untilMs) throw failure.error
  }

  async function resolveUnlessFailed(name: string): Promise<LookupAddress[]> {
    // Another look-up may have failed while this one waited for its turn.
    throwRecentFailure(name)
    const startedAtMs = performance.now()
    try {
      return await resolve(name)
    } catch (error) {
      const now = performance.now()
      if (failures.size >= MAX_FAILURES) failures.clear()
      const untilMs = now + Math.max(MIN_FAILURE_LIFETIME_MS, now - startedAtMs)
      failures.set(name, { error: error as Error, untilMs })
      throw error
    }
  }

  async function find(accountId: string, name: string): Promise<LookupAddress[]> {
    const local = await findInHosts(name)
    if (local.length > 0) return local
    throwRecentFailure(name)
    return inTurn(accountId, () => resolveUnlessFailed(name))
  }

  return (hostname, { family, accountId }, callback) => {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    // With the account: otherwise, a look-up could wait for the turn of another account.
    const key = `${accountId} ${name}`
    let search = running.get(key)
    if (!search) {
      search = find(accountId, name).finally(() => running.delete(key))
      running.set(key, search)
    }
    const wantedFamily = Number(String(family ?? 0).replace('IPv', ''))
    search.then(
      (addresses) =>
        callback(
          null,
          addresses.filter((each) => !wantedFamily || each.family === wantedFamily),
        ),
      (error) => callback(error, []),
    )
  }
}

/** Returns a function that runs at most `MAX_LOOKUPS` look-ups of each account at once, in the
 *  order of the calls. */
function turnsByAccount() {
  const turns = new Map<string, Turns>()
  return async <T>(accountId: string, run: () => Promise<T>): Promise<T> => {
    const ofAccount = turns.get(accountId) ?? new Turns(MAX_LOOKUPS)
    turns.set(accountId, ofAccount)
    try {
      return await ofAccount.take(run)
    } finally {
      if (ofAccount.isIdle) turns.delete(accountId)
    }
  }
}

function resolverOf(servers: string[] | undefined): (name: string) => Promise<LookupAddress[]> {
  let resolver: Resolver | undefined
  let createdAtMs = 0
  const current = (): Resolver => {
    if (resolver && performance.now() - createdAtMs < RESOLVER_LIFETIME_MS) return resolver
    resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
    if (servers) resolver.setServers(servers)
    createdAtMs = performance.now()
    return resolver
  }
  return async (name) => {
    const queries = [current().resolve4(name), current().resolve6(name)]
    // Some name servers ignore the queries for IPv4 or for IPv6 addresses.
    const tooLate = Promise.any(queries).then(() =>
      delay<string[]>(OTHER_FAMILY_MS, [], { ref: false }),
    )
    const results = await Promise.allSettled(queries.map((query) => Promise.race([query, tooLate])))
    const addresses = results.flatMap((result) =>
      result.status === 'fulfilled' ? result.value : [],
    )
    if (addresses.length > 0) return addresses.map(withFamily)
    const codes = results.map((result) =>
      result.status === 'rejected' ? result.reason.code : 'ENODATA',
    )
    const isAbsent = codes.every((code) => ['ENOTFOUND', 'ENODATA'].includes(code))
    throw Object.assign(new Error(`The look-up of ${name} failed: ${codes.join(', ')}`), {
      code: isAbsent ? 'ENOTFOUND' : 'EAI_AGAIN',
    })
  }
}

const withFamily = (address: string): LookupAddress => ({ address, family: isIP(address) })

function hostsReader(file: string): (name: string) => Promise<LookupAddress[]> {
  let hosts = Promise.resolve(new Map<string, LookupAddress[]>())
  let readAtMs = Number.NEGATIVE_INFINITY
  return async (name) => {
    if (performance.now() - readAtMs > HOSTS_LIFETIME_MS) {
      readAtMs = performance.now()
      // A promise, so that concurrent look-ups wait for it, too.
      hosts = readFile(file, 'utf8')
        .catch(() => '')
        .then(parseHosts)
    }
    return (await hosts).get(name) ?? []
  }
}

function parseHosts(text: string): Map<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names.map((each) => each.toLowerCase()))
      hosts.set(name, [...(hosts.get(name) ?? []), withFamily(address)])
  }
  return hosts
}
