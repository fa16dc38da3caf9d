/** Embedded PostgreSQL, in memory, on a thread of its own: it is synchronous and would hold up every request. */
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite, type PGliteOptions, parse, protocol, type Results } from '@electric-sql/pglite'

export interface PgliteOptions {
  /** Where the freshly made database is kept: starting from it takes a fifth of the time. Undefined: nowhere. */
  cacheDir?: string
  /** Of its one session. */
  settings: Record<string, string>
}

/** `values` undefined: a script, maybe of several statements. */
export interface PgliteCall {
  id: number
  text: string
  values?: unknown[]
}

/** Rows of one statement or, of a script, of each. Or what went wrong; `code` is the SQLSTATE. */
export type PgliteAnswer = { id: number } & (
  | { rows: unknown[][] }
  | { error: { message: string; code?: string } }
)

const { serialize } = protocol

/** The queue is a few megabytes, and its files are memory too: a large cache would only hold them twice. And nobody will ever recover from the
 *  log of what is in memory alone, so as little as possible is written to it. */
const SERVER = {
  shared_buffers: '16MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  full_page_writes: 'off',
}
/** In megabytes. A checkpoint keeps some files of the log for later, and they should be small. Made with the database, and kept with it. */
const WAL_SEGMENT_MB = 1
const START: PGliteOptions = {
  startParams: [
    ...PGlite.defaultStartParams,
    ...Object.entries(SERVER).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ],
}
/** A claim's text says how many it wants, of which there are some forty. */
const MAX_STATEMENTS = 60

const port = parentPort
if (!port) throw new Error('This file is the start of a worker thread')

const { cacheDir, settings } = workerData as PgliteOptions
const pglite = await start(cacheDir)
await pglite.exec(
  Object.entries(settings)
    .map(([name, value]) => `set ${name} = ${value};`)
    .join(' '),
)

let last = Promise.resolve()
port.on('message', (call: PgliteCall) => {
  // One after the other: a statement must not be forgotten between its preparation and its run.
  last = last.then(() => answer(call))
})
port.postMessage('ready')

async function answer({ id, text, values }: PgliteCall): Promise<void> {
  try {
    const results = values ? [await run(text, values)] : await pglite.exec(text)
    port?.postMessage({ id, rows: results.map((result) => result.rows) } satisfies PgliteAnswer)
  } catch (error) {
    const { name, message, code } = error as Error & { code?: string }
    // Of WebAssembly and of Emscripten: not an answer of the database but its end. This thread's too, so that it is noticed.
    if (name === 'RuntimeError' || name === 'ExitStatus') throw error
    port?.postMessage({ id, error: { message, code } } satisfies PgliteAnswer)
  }
}

async function start(cacheDir: string | undefined): Promise<PGlite> {
  if (cacheDir === undefined) return makeDatabase()
  const packageFile = join(
    dirname(fileURLToPath(import.meta.resolve('@electric-sql/pglite'))),
    '..',
    'package.json',
  )
  const { version } = JSON.parse(await readFile(packageFile, 'utf8')) as { version: string }
  const file = join(cacheDir, `queue-${version}-${WAL_SEGMENT_MB}.tar.gz`)
  const kept = await readFile(file).catch(() => undefined)
  if (kept) {
    try {
      return await PGlite.create({ ...START, loadDataDir: new Blob([kept]) })
    } catch {
      // A damaged file is as good as none.
      await rm(file, { force: true })
    }
  }
  const fresh = await makeDatabase()
  // A quicker next start is worth a try, no more. Renamed into place, so that it is there whole or not at all.
  try {
    const draft = `${file}.${randomUUID()}`
    await mkdir(cacheDir, { recursive: true })
    await writeFile(draft, await (await fresh.dumpDataDir('gzip')).bytes(), { flush: true })
    await rename(draft, file)
  } catch {}
  return fresh
}

function makeDatabase(): Promise<PGlite> {
  return PGlite.create({ ...START, initDbStartParams: [`--wal-segsize=${WAL_SEGMENT_MB}`] })
}

interface Statement {
  name: string
  /** Of its parameters. */
  types: number[]
}

const LONG = 32
const statements = new Map<string, Statement>()
let prepared = 0

/** Only a plan that was made for a list looks things up in it by hash, which is worth making one for a long list. */
function run(text: string, values: unknown[]): Promise<Results> {
  const isLong = values.some((value) => Array.isArray(value) && value.length > LONG)
  return isLong ? pglite.query(text, values) : runPrepared(text, values)
}

/** Runs a statement with the plan that was made for it before: to plan a claim takes five times as long as to make it. */
async function runPrepared(text: string, values: unknown[]): Promise<Results> {
  const { name, types } = statements.get(text) ?? (await prepare(text))
  const bound = values.map((value, index) => {
    if (value === null || value === undefined) return null
    const serializeValue = pglite.serializers[types[index] ?? 0]
    return serializeValue ? serializeValue(value) : String(value)
  })
  const messages = await exchange(
    serialize.bind({ statement: name, values: bound }),
    serialize.describe({ type: 'P' }),
    serialize.execute(),
    serialize.sync(),
  )
  const [result] = parse.parseResults(messages, pglite.parsers)
  return result ?? { rows: [], fields: [] }
}

async function prepare(text: string): Promise<Statement> {
  const name = `statement_${prepared++}`
  const described = await exchange(
    serialize.parse({ name, text }),
    serialize.describe({ type: 'S', name }),
    serialize.sync(),
  )
  const statement = { name, types: parse.parseDescribeStatementResults(described) }
  statements.set(text, statement)
  for (const [oldest, { name: forgotten }] of statements) {
    if (statements.size <= MAX_STATEMENTS) break
    statements.delete(oldest)
    await exchange(serialize.close({ type: 'S', name: forgotten }), serialize.sync())
  }
  return statement
}

/** Throws what the database says is wrong. */
async function exchange(
  ...messages: Uint8Array[]
): Promise<Parameters<typeof parse.parseResults>[0]> {
  const { messages: answers } = await pglite.runExclusive(() =>
    pglite.execProtocol(Buffer.concat(messages), { syncToFs: false }),
  )
  return answers
}
