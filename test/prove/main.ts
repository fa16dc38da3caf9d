/** `npm run test:faults`: measures the contract tests. Puts faults between the tests and this
 *  service, one at a time, and counts the faults that the tests find. */
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { startOwnService } from '../../cli/contract-service.ts'
import { formatTable, parseInteger } from '../../cli/shell.ts'
import * as validators from '../../generated/validators.js'
import { readContract } from '../../scripts/model/yaml.ts'
import { listSeededFaults } from './faults.ts'
import { isEnough, type Proof, prove, scoresOf } from './prove.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const command = new Command('npm run test:faults --')
  .description('Counts the faults of the service that "muster contract" finds.')
  .argument('[part]', 'only the faults that have this text in their names, for example "lists: "')
  .option('--seed <n>', 'determines the random data', parseInteger(0, 2 ** 31 - 1), 1)
  .option('--json', 'print one JSON document instead of the table', false)
  .addHelpText(
    'after',
    '\nTakes about seven minutes. Exit status: 0 if the tests find at least 95 % of all faults, and every\n' +
      'fault in the isolation of accounts and in signatures; otherwise 1.',
  )
  .parse()
const [part = ''] = command.args
const { seed, json } = command.opts<{ seed: number; json: boolean }>()

await using service = await startOwnService()
const contract = await readContract(ROOT)
const faults = listSeededFaults(contract, service).filter(({ category, what }) =>
  `${category}: ${what}`.includes(part),
)
if (faults.length === 0) throw new Error(`No fault has "${part}" in its name.`)
const proofs = await prove({ contract, validators, target: service }, faults, seed)
console.log(
  json
    ? JSON.stringify({ scores: scoresOf(proofs), faults: proofs }, null, 2)
    : formatProofs(proofs),
)
if (!isEnough(proofs)) process.exitCode = 1

function formatProofs(list: Proof[]): string {
  const scores = scoresOf(list)
  const missed = list
    .filter(({ foundBy }) => foundBy === null)
    .map(({ category, what, operation }) => `NOT FOUND  ${category}: ${what} (${operation})`)
  const found = list.length - missed.length
  const rows = [...scores, { category: 'all', found, faults: list.length }]
  return [
    formatTable(
      ['CATEGORY', 'FOUND', 'FAULTS', 'SCORE'],
      rows.map(({ category, found: count, faults: total }) => [
        category,
        String(count),
        String(total),
        `${Math.floor((100 * count) / total)} %`,
      ]),
    ),
    ...missed,
  ].join('\n')
}
