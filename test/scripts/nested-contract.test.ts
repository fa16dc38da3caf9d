/** `muster contract` for a contract without events and versions, in which the path of jobs is below
 *  that of tasks. */
import { cp } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatReport } from '../../cli/contract-output.ts'
import { Coverage, describeMissing, isMissing } from '../../scripts/contract/coverage/coverage.ts'
import { listUnused } from '../../scripts/contract/oracles.ts'
import { type Case, runSuite } from '../../scripts/contract/suite.ts'
import type { Contract } from '../../scripts/model/contract.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { type BoardsOptions, startBoards } from './boards.ts'
import { type ContractTree, newContractTree } from './contract-tree.ts'

const SEED = 1
const KEY = 'key0'

let tree: ContractTree
let contract: Contract
// biome-ignore lint/suspicious/noExplicitAny: A generated file of the temporary folder.
let validators: any
beforeAll(async () => {
  tree = await newContractTree()
  await cp(new URL('nested-contract', import.meta.url), tree.root, { recursive: true })
  await tree.generate()
  contract = await readContract(tree.root)
  validators = await import(tree.path('generated/validators.js'))
})
afterAll(() => tree[Symbol.asyncDispose]())

type Faults = Pick<BoardsOptions, 'fault' | 'changesForMs'>

/** Runs the contract tests against a service with these faults. */
async function testBoards(faults: Faults = {}) {
  await using service = await startBoards({
    contract,
    key: KEY,
    isValid: ({ id }, body) => validators.bodies[id](body),
    ...faults,
  })
  const ids = contract.operations.map(({ id }) => id)
  const coverage = new Coverage(contract, ids, { hasRestrictedKey: false })
  const cases: Case[] = []
  await runSuite({
    contract,
    validators,
    target: { url: service.url, key: KEY },
    options: { ids, seed: SEED, randomRequests: 3 },
    coverage,
    onCase: (each) => void cases.push(each),
    toCurl: ({ method, path }) => `${method} ${path}`,
  })
  const text = formatReport({
    url: service.url,
    seed: SEED,
    error: null,
    dredd: null,
    cases,
    cells: coverage.listCells(),
    untested: coverage.listUntested(),
    unused: listUnused(cases),
    refusals: coverage.refusals.list(),
  })
  return { service, cases, text }
}

test('a service that keeps the contract passes all cases', async () => {
  const { cases, text } = await testBoards()
  expect(cases.flatMap(({ failures }) => failures)).toEqual([])
  expect(text).toContain('the contract holds.')
  const tested = new Set(cases.map(({ operation, name }) => `${operation} ${name}`))
  expect(tested).toContain('listJobs lists the right records')
  expect(tested).toContain('createJob does not repeat a request with the same idempotency key')
})

test('the tests fill in each path parameter, and delete the records that they create', async () => {
  const { service } = await testBoards()
  expect(service.paths.filter((path) => /[{}]/.test(decodeURIComponent(path)))).toEqual([])
  expect(service.records.size).toBe(0)
})

test('a service whose listed records change for half a second passes all cases', async () => {
  const { cases } = await testBoards({ changesForMs: 500 })
  expect(cases.flatMap(({ failures }) => failures)).toEqual([])
})

test('prints a line for each check that needs another option', async () => {
  const { text, cases } = await testBoards()
  expect(text.match(/^SKIP .*$/gm)).toEqual([
    'SKIP  delivers its events: had nothing to check; it needs the option --receiver-url',
    'SKIP  attempts deliveries until they are accepted: had nothing to check; it needs the option --receiver-url',
    'SKIP  delivers to each webhook what it must get: had nothing to check; it needs no option --url',
    'SKIP  keeps accounts apart: had nothing to check; it needs the option --other-key',
  ])
  expect(cases.map(({ name }) => name)).not.toContain('delivers its events')
})

test('names a reason in x-untested for a promise that the run tested', async () => {
  const own = await readContract(tree.root)
  Object.assign(own.openapi.root as object, { 'x-untested': { 'body required': 'Impossible.' } })
  const ids = own.operations.map(({ id }) => id)
  const coverage = new Coverage(own, ids, { hasRestrictedKey: false, isOwnService: true })
  coverage.testsBy('a check').tested('createJob', 'body required', 'title')
  expect(coverage.listCells().filter(isMissing).map(describeMissing)).toContain(
    'a check tested "body required title": remove the reason from x-untested',
  )
})

test.each<{ fault: BoardsOptions['fault']; failed: string }>([
  { fault: 'lists the jobs of all tasks', failed: 'listJobs lists the right records' },
  {
    fault: 'ignores X-Idempotency',
    failed: 'createJob does not repeat a request with the same idempotency key',
  },
])('a service that $fault fails: $failed', async ({ fault, failed }) => {
  const { cases } = await testBoards({ fault })
  const names = cases
    .filter(({ failures }) => failures.length > 0)
    .map(({ operation, name }) => `${operation} ${name}`)
  expect(names).toContain(failed)
})
