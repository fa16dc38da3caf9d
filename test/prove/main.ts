/** `npm run test:faults`: puts faults of single responses between the contract tests and this
 *  service, one at a time, and counts the faults that the tests find. */
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { startOwnService } from '../../cli/contract-service.ts'
import { formatTable, parseInteger } from '../../cli/shell.ts'
import * as validators from '../../generated/validators.js'
import { readContract } from '../../scripts/model/yaml.ts'
import { listSeededFaults } from './faults.ts'
import { countByCategory, type Proof, prove } from './prove.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const command = new Command('npm run test:faults --')
  .description(
    'Changes requests and responses between "muster contract" and the service, and counts the faults found.',
  )
  .argument('[part]', 'only the faults that have this text in their names, for example "lists: "')
  .option('--seed <n>', 'determines the random data', parseInteger(0, 2 ** 31 - 1), 1)
  .option('--json', 'print one JSON document instead of the table', false)
  .addHelpText(
    'after',
    '\nTakes about seven minutes. The faults were written together with the tests: for a measure of the\n' +
      'tests, use "npm run test:mutants". Exit status: 0 if the tests find every fault, otherwise 1.',
  )
  .parse()
const [part = ''] = command.args
const { seed, json } = command.opts<{ seed: number; json: boolean }>()

await using service = await startOwnService({ webhookTimeoutMs: 3_000 })
const contract = await readContract(ROOT)
const faults = listSeededFaults(contract, service).filter(({ category, what }) =>
  `${category}: ${what}`.includes(part),
)
if (faults.length === 0) throw new Error(`No fault has "${part}" in its name.`)
const proofs = await prove({ contract, validators, target: service }, faults, seed)
console.log(
  json
    ? JSON.stringify({ categories: countByCategory(proofs), faults: proofs }, null, 2)
    : formatProofs(proofs),
)
if (proofs.some(({ foundBy }) => foundBy === null)) process.exitCode = 1

function formatProofs(list: Proof[]): string {
  const missed = list
    .filter(({ foundBy }) => foundBy === null)
    .map(({ category, what, operation }) => `NOT FOUND  ${category}: ${what} (${operation})`)
  const found = list.length - missed.length
  const rows = [...countByCategory(list), { category: 'all', found, faults: list.length }]
  return [
    formatTable(
      ['CATEGORY', 'FOUND', 'FAULTS'],
      rows.map(({ category, found: count, faults }) => [category, String(count), String(faults)]),
    ),
    ...missed,
  ].join('\n')
}
