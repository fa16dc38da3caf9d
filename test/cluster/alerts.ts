/** A real Prometheus with deploy/prometheus/alerts.yaml. It scrapes the nodes as docs/operations.md says. */
import { copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import yaml from 'js-yaml'
import type { Node } from '../chaos/cluster.ts'
import { freePort } from '../postgres.ts'
import type { Programs } from './programs.ts'
import { newFolder, newProgram } from './servers.ts'

export interface Alerts extends AsyncDisposable {
  /** Waits until no alert is firing or pending, so that an earlier fault, or the time before the first
   *  scrape, does not count. Then notes the alerts that fire. */
  watch(): Promise<AlertWatch>
}

interface AlertWatch {
  /** When each alert began to fire, in milliseconds since `watch`. */
  fired: Map<string, number>
  /** Waits until no alert fires. Returns a sentence for each difference to the expected alerts. */
  end(expected: string[]): Promise<string[]>
}

const PROMETHEUS = '/usr/bin/prometheus'
const RULES = fileURLToPath(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url))
const SCRAPE_INTERVAL = '15s'
const POLL_MS = 500
/** An alert ends with the scrape and the evaluation after the fault. */
const END_WITHIN_MS = 45_000
/** They compare the requests of 5 minutes, so that several faults cause them together. */
const SLOW = ['MusterErrors', 'MusterSlow']

/** Undefined where Prometheus is not installed. */
export async function startAlerts(
  nodes: Node[],
  folder: string,
  programs: Programs,
): Promise<Alerts | undefined> {
  if (!existsSync(PROMETHEUS)) return undefined
  const home = newFolder(folder, 'prometheus')
  const file = join(folder, 'prometheus.yaml')
  const rules = join(folder, 'alerts.yaml')
  copyFileSync(RULES, rules)
  const targets = nodes.map(({ url }) => new URL(url).host)
  writeFileSync(
    file,
    yaml.dump({
      global: { scrape_interval: SCRAPE_INTERVAL, evaluation_interval: SCRAPE_INTERVAL },
      rule_files: [rules],
      scrape_configs: [{ job_name: 'muster', static_configs: [{ targets }] }],
    }),
  )
  const address = `127.0.0.1:${await freePort()}`
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${home}`,
    `--web.listen-address=${address}`,
    '--log.level=warn',
  ]
  const log = join(folder, 'prometheus.log')
  const prometheus = newProgram(PROMETHEUS, args, { home, log, programs })
  process.once('exit', () => prometheus.signal('SIGKILL'))
  prometheus.start()
  const api = `http://${address}/api/v1`
  return {
    async watch() {
      const deadline = Date.now() + END_WITHIN_MS
      while (!(await isCalm(api)) && Date.now() < deadline) await delay(POLL_MS)
      return watchAlerts(api)
    },
    [Symbol.asyncDispose]: prometheus.end,
  }
}

function watchAlerts(api: string): AlertWatch {
  const since = Date.now()
  const fired: AlertWatch['fired'] = new Map()
  let firing: string[] = []
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      firing = await findAlerts(api, ['firing'])
      for (const name of firing) if (!fired.has(name)) fired.set(name, Date.now() - since)
      await delay(POLL_MS)
    }
  })()
  return {
    fired,
    async end(expected) {
      const deadline = Date.now() + END_WITHIN_MS
      while (firing.length > 0 && Date.now() < deadline) await delay(POLL_MS)
      isOver = true
      await watching
      return [
        ...expected.filter((name) => !fired.has(name)).map((name) => `${name} did not fire`),
        ...fired
          .keys()
          .filter((name) => !expected.includes(name))
          .map((name) => `${name} fired`),
        ...firing.map((name) => `${name} did not end`),
      ]
    },
  }
}

/** Whether Prometheus has metrics of the nodes, and none of them causes an alert. */
async function isCalm(api: string): Promise<boolean> {
  const { result } = await get<{ result: unknown[] }>(`${api}/query?query=muster_ready`)
  return result.length > 0 && (await findAlerts(api, ['firing', 'pending'])).length === 0
}

async function findAlerts(api: string, states: string[]): Promise<string[]> {
  const { alerts } = await get<{ alerts: { state: string; labels: { alertname: string } }[] }>(
    `${api}/alerts`,
  )
  const names = alerts
    .filter(({ state }) => states.includes(state))
    .map(({ labels }) => labels.alertname)
  return [...new Set(names)].filter((name) => !SLOW.includes(name))
}

async function get<Data>(url: string): Promise<Data> {
  const response = await fetch(url)
  return ((await response.json()) as { data: Data }).data
}
