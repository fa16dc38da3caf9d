/** `npm run bench`: what Muster costs beside doing the same with less, on both databases, in one run. */
import { Command, Option } from 'commander'
import { parseList } from '../../cli/shell.ts'
import { consolePages } from './console.ts'
import { contract } from './contract.ts'
import { drain } from './drain.ts'
import { horizon } from './horizon.ts'
import { isolation } from './isolation.ts'
import { latency } from './latency.ts'
import { lateness } from './lateness.ts'
import { list } from './list.ts'
import { memory } from './memory.ts'
import { peer } from './peer.ts'
import { regenerate } from './regenerate.ts'
import { isMet, printed, type Result } from './result.ts'
import { type Bench, type DatabaseKind, databaseKinds, openDatabases } from './set-up.ts'
import { startup } from './startup.ts'
import { workers } from './workers.ts'

const measures: Record<string, { run(bench: Bench): Promise<Result[]>; about: string }> = {
  contract: {
    run: contract,
    about: 'what the contract adds to a request, beside the same work by hand',
  },
  list: {
    run: list,
    about: 'the first 25 of 10,000 participants, beside bare Koa with the same two statements',
  },
  drain: {
    run: drain,
    about: 'a backlog of deliveries, beside raw POSTs of the same bytes to the same receivers',
  },
  isolation: {
    run: isolation,
    about: 'what one webhook of 20 that never answers costs the others',
  },
  workers: { run: workers, about: 'two worker processes beside one (PostgreSQL)' },
  peer: { run: peer, about: 'the same deliveries by graphile-worker (PostgreSQL)' },
  horizon: { run: horizon, about: 'fetch and sweep with a million attempts planned for later' },
  lateness: { run: lateness, about: 'how late attempts begin that were planned for a time' },
  memory: { run: memory, about: 'over 200,000 deliveries' },
  latency: {
    run: latency,
    about: 'from a change by the API to the webhook that tells of it, at 25 a second',
  },
  console: {
    run: consolePages,
    about: 'its lists with a million requests and deliveries, and what a page costs',
  },
  regenerate: {
    run: regenerate,
    about: 'a change of the contract until it is generated, and until "muster dev" serves it',
  },
  startup: { run: startup, about: '"muster serve" until it is ready' },
}

interface Options {
  only: string[]
  on: DatabaseKind[]
  quick: boolean
  json: boolean
}

const names = Object.keys(measures)
const options: Options = new Command('npm run bench --')
  .description(
    'Measures Muster on SQLite with the embedded queue and on PostgreSQL, beside doing the same with less, in one run.',
  )
  .addOption(
    new Option('--only <measures>', 'some of them, with commas between')
      .argParser(parseList(...names))
      .default(names, 'all'),
  )
  .addOption(
    new Option('--on <databases>', 'sqlite or postgres')
      .argParser(parseList(...databaseKinds))
      .default([...databaseKinds], 'both'),
  )
  .option('--quick', 'fewer rounds of less: shows that everything works, not how fast', false)
  .option('--json', 'print one JSON document instead of the table', false)
  .addHelpText(
    'after',
    `\nMeasures:\n${names.map((name) => `  ${name.padEnd(10)} ${measures[name]?.about}`).join('\n')}\n`,
  )
  .addHelpText(
    'after',
    'Takes about twenty minutes, and means something on a machine that does nothing else. A goal that is missed is no error.',
  )
  .parse()
  .opts()

const say = (text: string): void => void process.stderr.write(`${text}\n`)
// Otherwise a signal would leave the database server behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const results: (Result & { measure: string; database: DatabaseKind })[] = []
await using databases = await openDatabases(options.on)
for (const measure of options.only) {
  for (const database of options.on) {
    const name = `${measure} on ${database}`
    const bench: Bench = {
      database,
      quick: options.quick,
      newEnvironment: () => databases.newEnvironment(database),
      progress: (text) => say(`${name}: ${text}`),
    }
    bench.progress('setting up')
    try {
      const found = (await measures[measure]?.run(bench)) ?? []
      results.push(...found.map((result) => ({ measure, database, ...result })))
    } catch (error) {
      console.error(`${name} failed:`, error)
      process.exitCode = 1
    }
  }
}
console.log(
  options.json
    ? JSON.stringify(
        results.map((result) => ({ ...result, met: isMet(result) })),
        null,
        2,
      )
    : printed(results),
)
