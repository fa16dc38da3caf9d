/** Runs contract tests and tests in the instrumented copy, each in processes of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { ContractResult, ContractRun } from './contract-run.ts'

/** How long a run with a mutant may take, compared to one without. Other runs can be beside it. */
const SLOWNESS = 4
const START_SECONDS = 60

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) kill(child)
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** The whole group of the process, with the services that tests start. */
function kill({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended.
  }
}

interface Ended {
  /** Null: it was stopped after the time limit. */
  status: number | null
  output: string
}

interface Limits {
  /** The ID of the mutant to switch on. */
  mutant?: string
  limitSeconds: number
}

/** Runs Node.js in the copy. */
async function runNode(
  copy: string,
  args: string[],
  options: Limits & { environment?: Record<string, string> },
): Promise<Ended> {
  const temporary = await mkdtemp(join(tmpdir(), 'muster-mutant-'))
  const { VITEST: _, ...inherited } = process.env
  const child = spawn(process.execPath, args, {
    cwd: copy,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...inherited,
      TMPDIR: temporary,
      UV_THREADPOOL_SIZE: '16',
      NODE_COMPILE_CACHE: join(copy, '../compile-cache'),
      ...(options.mutant && { __STRYKER_ACTIVE_MUTANT__: options.mutant }),
      ...options.environment,
    },
  })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    kill(child)
  }, options.limitSeconds * 1000)
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  kill(child)
  running.delete(child)
  await rm(temporary, { recursive: true, force: true })
  return { status: isLate ? null : (status ?? 1), output }
}

/** The limit for what takes so many seconds without a mutant. */
export const limitFor = (seconds: number): number => START_SECONDS + SLOWNESS * seconds

/** Returns the first failure of the contract tests, or null if the contract holds. */
export async function runContract(
  copy: string,
  run: ContractRun,
  options: Limits,
): Promise<ContractResult> {
  const args = ['test/mutants/contract-run.ts', JSON.stringify(run)]
  const { status, output } = await runNode(copy, args, options)
  const line = output.split('\n').find((text) => text.startsWith('{"failure"'))
  if (line !== undefined) return JSON.parse(line)
  return { failure: describeEnd(status, output), start: [], operations: {} }
}

function describeEnd(status: number | null, output: string): string {
  return status === null ? 'the run does not end' : `the run crashes: ${output.trim().slice(-500)}`
}

/** Test folders whose files run the service in their own process. */
const TEST_FOLDERS = ['auth', 'console', 'contract', 'handlers', 'records', 'server', 'webhooks']
/** They run `muster contract` itself, or a browser. */
const LEFT_OUT = ['test/contract/{contract,contract-faults,dredd}.test.ts', '**/*browser*.test.ts']
const LEARN_LIMIT_SECONDS = 3600

interface VitestReport {
  testResults: {
    name: string
    status: string
    startTime: number
    endTime: number
    assertionResults: { status: string; fullName: string }[]
  }[]
}

/** Runs every test file once, without a mutant. Leaves out the files that fail. */
export async function learnTests(copy: string): Promise<ContractResult['operations']> {
  const folder = join(copy, '../test-coverage')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const args = [
    ...TEST_FOLDERS.map((name) => `test/${name}/`),
    ...LEFT_OUT.flatMap((pattern) => ['--exclude', pattern]),
  ]
  const { report } = await runVitest(copy, args, {
    limitSeconds: LEARN_LIMIT_SECONDS,
    environment: { MUTANT_COVERAGE: folder },
  })
  const passed = new Map(
    report?.testResults
      .filter(({ status }) => status === 'passed')
      .map(({ name, startTime, endTime }) => [name, (endTime - startTime) / 1000]),
  )
  const files = await Promise.all(
    (await readdir(folder)).map(async (name) =>
      JSON.parse(await readFile(join(folder, name), 'utf8')),
    ),
  )
  return Object.fromEntries(
    files.flatMap(({ file, counts }) => {
      const seconds = passed.get(join(copy, file))
      return seconds === undefined ? [] : [[file, { counts, seconds }]]
    }),
  )
}

/** Runs the test files until the first failure, and returns it. Null: the tests pass. */
export async function runTests(
  copy: string,
  files: string[],
  options: Limits,
): Promise<string | null> {
  const args = ['--bail', '1', '--maxWorkers', '1', ...files]
  const { status, output, report } = await runVitest(copy, args, options)
  if (status === 0) return null
  const failed = report?.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter((test) => test.status === 'failed')
      .map(({ fullName }) => `${relative(copy, name)}: ${fullName}`),
  )
  return failed?.[0] ?? describeEnd(status, output)
}

async function runVitest(
  copy: string,
  args: string[],
  options: Parameters<typeof runNode>[2],
): Promise<Ended & { report?: VitestReport }> {
  const results = await mkdtemp(join(tmpdir(), 'muster-mutant-results-'))
  const file = join(results, 'results.json')
  const ended = await runNode(
    copy,
    [
      ...['node_modules/vitest/vitest.mjs', 'run', '--root', '.'],
      ...['--config', 'test/mutants/vitest.config.ts', '--reporter', 'json', '--outputFile', file],
      ...args,
    ],
    options,
  )
  const text = await readFile(file, 'utf8').catch(() => undefined)
  await rm(results, { recursive: true, force: true })
  return { ...ended, report: text === undefined ? undefined : JSON.parse(text) }
}
