/** `npm run bench`: compares Muster with simpler programs, on both databases, in one run. */
import { Command, Option } from 'commander'
import { parseList } from '../../cli/shell.ts'
import { batches } from './batches.ts'
import { changes } from './changes.ts'
import { consolePages } from './console.ts'
import { contract } from './contract.ts'
import { deploys } from './deploys.ts'
import { drain } from './drain.ts'
import { footprint } from './footprint.ts'
import { horizon } from './horizon.ts'
import { imports } from './imports.ts'
import { inputs } from './inputs.ts'
import { isolation } from './isolation.ts'
import { latency } from './latency.ts'
import { lateness } from './lateness.ts'
import { list } from './list.ts'
import { lists } from './lists.ts'
import { memory } from './memory.ts'
import { neighbours, scenarios } from './neighbours.ts'
import { operations } from './operations.ts'
import { peer } from './peer.ts'
import { regenerate } from './regenerate.ts'
import { formatResults, isMet, type Result } from './result.ts'
import { type Bench, type DatabaseKind, databaseKinds, openDatabases } from './set-up.ts'
import { startup } from './startup.ts'
import { takeovers } from './takeovers.ts'
import { workers } from './workers.ts'

const measures: Record<string, { run(bench: Bench): Promise<Result[]>; about: string }> = {
  contract: {
    run: contract,
    about: 'the cost of the contract for each request',
  },
  list: {
    run: list,
    about: 'the first 25 of 10,000 participants, compared with bare Koa, and the last 25 by cursor',
  },
  lists: {
    run: lists,
    about:
      'lists of 1,000,000 participants, compared with the same of 10,000, and walks through all pages',
  },
  drain: {
    run: drain,
    about: 'how fast a backlog of deliveries is sent, compared with raw POSTs',
  },
  isolation: {
    run: isolation,
    about: 'the effect of one hanging endpoint on 19 other webhooks',
  },
  workers: { run: workers, about: 'two worker processes compared with one (PostgreSQL)' },
  peer: { run: peer, about: 'the same backlog, compared with graphile-worker (PostgreSQL)' },
  horizon: { run: horizon, about: 'leases and sweeps with a million attempts scheduled for later' },
  lateness: { run: lateness, about: 'how late scheduled attempts start' },
  inputs: {
    run: inputs,
    about: 'how long the worst inputs and the largest pages block the event loop',
  },
  memory: { run: memory, about: 'memory over 200,000 deliveries' },
  footprint: { run: footprint, about: 'the memory of "muster serve", compared with bare Koa' },
  latency: {
    run: latency,
    about: 'from a change through the API to its webhook request, at 25 per second',
  },
  changes: {
    run: changes,
    about: 'creates with an Idempotency-Key, from the request to the signed POST to one webhook',
  },
  batches: { run: batches, about: 'creates in batches of 100, compared with single creates' },
  console: {
    run: consolePages,
    about: 'the lists of the console with a million requests and deliveries',
  },
  imports: {
    run: imports,
    about: 'the rate and the memory of an import of 100,000 rows, compared with single creates',
  },
  regenerate: {
    run: regenerate,
    about: 'from a change of the contract until "muster dev" serves it',
  },
  operations: {
    run: operations,
    about: 'generate, lint and start with twelve times the operations',
  },
  neighbours: { run: neighbours, about: 'how much other accounts can slow down one account' },
  takeovers: {
    run: takeovers,
    about: 'how long no delivery is made after kill -9 of the leader (PostgreSQL)',
  },
  deploys: { run: deploys, about: 'response times while nodes restart (PostgreSQL)' },
  startup: { run: startup, about: 'the start of "muster serve" until it is ready' },
}

interface Options {
  only: string[]
  on: DatabaseKind[]
  quick: boolean
  before?: string
  scenarios: string[]
  json: boolean
}

const names = Object.keys(measures)
const options: Options = new Command('npm run bench --')
  .description(
    'Measures Muster in embedded mode and on PostgreSQL, and compares it with simpler programs.',
  )
  .addOption(
    new Option('--only <measures>', 'comma-separated names')
      .argParser(parseList(...names))
      .default(names, 'all'),
  )
  .addOption(
    new Option('--on <databases>', 'sqlite or postgres')
      .argParser(parseList(...databaseKinds))
      .default([...databaseKinds], 'both'),
  )
  .option(
    '--quick',
    'fewer and smaller rounds: checks that the measurements work, not their results',
    false,
  )
  .option(
    '--before <folder>',
    'also measure an earlier checkout with its packages, by turns (only "changes")',
  )
  .addOption(
    new Option('--scenarios <names>', `of "neighbours": ${scenarios.join(', ')}`)
      .argParser(parseList(...scenarios))
      .default(scenarios, 'all'),
  )
  .option('--json', 'print one JSON document instead of the table', false)
  .addHelpText(
    'after',
    `\nMeasures:\n${names.map((name) => `  ${name.padEnd(10)} ${measures[name]?.about}`).join('\n')}\n`,
  )
  .addHelpText(
    'after',
    'Takes about twenty minutes. Use an otherwise idle machine. A missed goal is not an error.',
  )
  .parse()
  .opts()

const log = (text: string): void => void process.stderr.write(`${text}\n`)
// Without these listeners a signal would leave the database server running.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const results: (Result & { measure: string; database: DatabaseKind })[] = []
await using databases = await openDatabases(options.on)
for (const measure of options.only) {
  for (const database of options.on) {
    const name = `${measure} on ${database}`
    const bench: Bench = {
      database,
      quick: options.quick,
      before: options.before,
      scenarios: options.scenarios,
      newEnvironment: () => databases.newEnvironment(database),
      progress: (text) => log(`${name}: ${text}`),
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
    : formatResults(results),
)
