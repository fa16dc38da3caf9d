/** `npm run drill:cluster`: checks deploy/cluster/ while its parts fail. */
import { Command, Option } from 'commander'
import { formatTable, parseList } from '../../cli/shell.ts'
import { clusterFaults, SHORT_FAULTS } from './faults.ts'
import { installPrograms, NotInstallable } from './programs.ts'
import { type DrillReport, drillCluster, type FaultReport, NODES } from './run.ts'

const names = clusterFaults.map(({ name }) => name)

const { faults, short, json } = new Command('npm run drill:cluster --')
  .description(
    'Starts etcd, three PostgreSQL under Patroni, HAProxy and two nodes on loopback, with the files of ' +
      'deploy/cluster/. Causes one fault after another under load, and compares acknowledged changes with the ' +
      'events and the webhook requests.',
  )
  .addOption(new Option('--faults <names>', 'only these').argParser(parseList(...names)))
  .option('--short', `only ${SHORT_FAULTS.join(', ')}`, false)
  .option('--json', 'print one JSON document instead of the table', false)
  .addHelpText(
    'after',
    `
The faults: ${names.join(', ')}.

The node "proxy" reaches PostgreSQL through HAProxy, the node "hosts" names all three in DATABASE_URL.
The exit status is 1 when an acknowledged change is lost, a delivery does not arrive, a node ends by itself, a
healthy node does not respond, no change succeeds within 1.5 s after a promotion, a session of the console does not
see its own change, or the console is later than DATABASE_READ_MAX_LAG_MS. With the package prometheus, it
is also 1 when an alert of deploy/prometheus/ does not fire or end as it should, or another one fires. The other
programs come from packages of Debian and PyPI. Where they cannot be installed, the drill says so and ends with
status 0.
`,
  )
  .parse()
  .opts<{ faults?: string[]; short: boolean; json: boolean }>()

// Without these listeners a signal would leave servers running.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const inSeconds = (times: (number | undefined)[]): string =>
  times.map((ms) => (ms === undefined ? '-' : (ms / 1_000).toFixed(1))).join(' / ')

const columns: [title: string, format: (fault: FaultReport) => string][] = [
  ['FAULT', ({ fault }) => fault],
  ['ACKNOWLEDGED', ({ acknowledged }) => String(acknowledged)],
  ['LOST', ({ lost }) => String(lost)],
  ['NO WRITES, S', ({ withoutWritesMs }) => inSeconds(withoutWritesMs)],
  ['NO READS, S', ({ withoutReadsMs }) => inSeconds(withoutReadsMs)],
  ['NO CONSOLE, S', ({ withoutConsoleMs }) => inSeconds(withoutConsoleMs)],
  ['CONSOLE LAG, S', ({ consoleLagMs }) => inSeconds([consoleLagMs])],
  ['AFTER PROMOTION, S', ({ afterPromotionMs }) => inSeconds(afterPromotionMs)],
  ['503', ({ responses }) => String(responses['503'] ?? 0)],
  ['LATE', ({ lateDeliveries }) => String(lateDeliveries)],
  ['SLOWEST, S', ({ slowestDeliveryMs }) => inSeconds([slowestDeliveryMs])],
  ['DUPLICATES', ({ duplicates }) => String(duplicates)],
  ['LOG LINES', ({ logLines }) => String(logLines)],
  [
    'ALERTS, S',
    ({ alerts }) =>
      Object.entries(alerts)
        .map(([name, ms]) => `${name} ${inSeconds([ms])}`)
        .join(', '),
  ],
]

const began = Date.now()
const progress = (text: string): void => {
  const seconds = Math.floor((Date.now() - began) / 1_000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${text}\n`)
}

try {
  const wanted = faults ?? (short ? SHORT_FAULTS : names)
  const report = await drillCluster({
    programs: await installPrograms(progress),
    faults: clusterFaults.filter(({ name }) => wanted.includes(name)),
    progress,
  })
  console.log(json ? JSON.stringify(report, null, 2) : formatReport(report))
  process.exitCode = report.broken.length > 0 ? 1 : 0
} catch (error) {
  if (!(error instanceof NotInstallable)) throw error
  console.log(`The drill of the cluster is skipped: ${error.message}`)
}

function formatReport({ faults, deliveries, broken, logs }: DrillReport): string {
  const rows = faults.map((fault) => columns.map(([, format]) => format(fault)))
  const lines = [
    formatTable(
      columns.map(([title]) => title),
      rows,
    ),
    `Pairs of figures: the nodes ${NODES.join(' and ')}. ${deliveries} deliveries.`,
    ...broken.slice(0, 20),
  ]
  if (broken.length > 0) lines.push(`${broken.length} promises were broken. Logs: ${logs}`)
  return lines.join('\n')
}
