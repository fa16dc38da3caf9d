/** Reads of the console on standbys: a session sees its own changes at once, and others see them within the longest
 *  lag. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Node } from '../chaos/cluster.ts'
import type { Successes } from './traffic.ts'

/** The default of DATABASE_READ_MAX_LAG_MS. */
const MAX_LAG_MS = 10_000
/** A node looks once a second how far the primary is. The machine is busy. */
const MARGIN_MS = 2_500
/** Two nodes together stay below the 120 forms that a user may send in a minute. */
const CHANGE_EVERY_MS = 1_500
const READ_EVERY_MS = 300
const PATIENCE_MS = 30_000
/** The page shows more entries. */
const LATEST = 20

export interface ConsoleTraffic {
  /** The age of the oldest change that another session did not see yet, at its most. */
  longestLagMs(from: number, to: number): number
  /** One sentence for each broken promise. */
  broken: string[]
  stop(): Promise<void>
}

/** Renames the account through each node again and again, and reads the audit log with and without the position of
 *  the change. `session` is the token of the Account Owner. */
export function startConsole(nodes: Node[], session: string, successes: Successes): ConsoleTraffic {
  const renamed: { name: string; at: number }[] = []
  const lags: { at: number; ms: number }[] = []
  const broken: string[] = []
  let isOver = false
  const change = async (node: Node, number: number): Promise<void> => {
    const name = `${node.name}-${number}.`
    const cookies = await rename(node, session, name)
    if (cookies === undefined) return
    renamed.push({ name, at: Date.now() })
    const page = await readLog(node, cookies)
    if (page?.includes(name) === false)
      broken.push(`${node.name}: a session did not see its own change`)
  }
  const read = async (node: Node): Promise<void> => {
    const latest = renamed.slice(-LATEST)
    const startedAt = Date.now()
    const page = await readLog(node, cookieOf(session))
    if (page === undefined) return
    successes.add(node, startedAt)
    const missing = latest.find(({ name }) => !page.includes(name))
    const ms = missing ? startedAt - missing.at : 0
    lags.push({ at: startedAt, ms })
    if (ms > MAX_LAG_MS + MARGIN_MS) broken.push(`${node.name}: the console was ${ms} ms late`)
  }
  const repeat = async (everyMs: number, work: (number: number) => Promise<void>) => {
    for (let number = 0; !isOver; number++) {
      await work(number)
      await delay(everyMs)
    }
  }
  const visitors = nodes.flatMap((node) => [
    repeat(CHANGE_EVERY_MS, (number) => change(node, number)),
    repeat(READ_EVERY_MS, () => read(node)),
  ])
  return {
    longestLagMs: (from, to) =>
      Math.max(0, ...lags.filter(({ at }) => at > from && at < to).map(({ ms }) => ms)),
    broken,
    async stop() {
      isOver = true
      await Promise.all(visitors)
    },
  }
}

const cookieOf = (session: string): string => `muster-session=${session}`

/** Returns the cookies after the change. Undefined: it may have failed. */
async function rename(node: Node, session: string, name: string): Promise<string | undefined> {
  const response = await send(node, '/settings', cookieOf(session), new URLSearchParams({ name }))
  if (response?.status !== 303) return undefined
  const position = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
  return [cookieOf(session), ...position].join('; ')
}

/** The main part of the page with the newest changes of the account: records have entries, too, and the frame
 *  has the name of the account. Undefined: no response with 200. */
async function readLog(node: Node, cookie: string): Promise<string | undefined> {
  const response = await send(node, '/audit-log?kind=account', cookie)
  if (response?.status !== 200) return undefined
  const text = await response.text().catch(() => '')
  return text.split('<main')[1]
}

function send(
  node: Node,
  path: string,
  Cookie: string,
  body?: URLSearchParams,
): Promise<Response | undefined> {
  return fetch(`${node.url}/console${path}`, {
    method: body ? 'POST' : 'GET',
    body,
    headers: { Cookie },
    redirect: 'manual',
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).catch(() => undefined)
}
