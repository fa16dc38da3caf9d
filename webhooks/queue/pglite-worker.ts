/** Embedded PostgreSQL in memory. It is synchronous, so it has its own thread, where it blocks no
 *  request. */
import { readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import { PGlite, parse, protocol, type Results } from '@electric-sql/pglite'
import { EMPTY_DATABASE, START_OPTIONS } from './empty-database.ts'

/** Without `values` the text is a script of one or more statements. */
export interface PgliteRequest {
  id: number
  text: string
  values?: unknown[]
}

/** The rows of each statement, or an error; `code` is the SQLSTATE. */
export type PgliteResponse = { id: number } & (
  | { rows: unknown[][] }
  | { error: { message: string; code?: string } }
)

const { serialize } = protocol

/** How many statements stay prepared. About forty of them are leases: each batch size has a text of
 *  its own. */
const MAX_PREPARED_STATEMENTS = 60

// V8 would spend 2 s and 600 MB of memory on the optimization of one large function of PostgreSQL,
// and deliveries would take no less CPU time. The flags apply to the whole process, but only to
// WebAssembly that is compiled from now on.
for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']) setFlagsFromString(flag)

const port = parentPort
if (!port) throw new Error('This file must run in a worker thread')

// Module state: this thread runs one database, with one connection and its prepared statements.
const pglite = await PGlite.create({
  ...START_OPTIONS,
  loadDataDir: new Blob([await readFile(EMPTY_DATABASE)], { type: 'application/gzip' }),
})
let lastResponse = Promise.resolve()
port.on('message', (request: PgliteRequest) => {
  // One after the other: a statement must not be closed between its preparation and its execution.
  lastResponse = lastResponse.then(() => respond(request))
})
port.postMessage('ready')

async function respond({ id, text, values }: PgliteRequest): Promise<void> {
  try {
    const results = values ? [await run(text, values)] : await pglite.exec(text)
    port?.postMessage({ id, rows: results.map((result) => result.rows) } satisfies PgliteResponse)
  } catch (error) {
    const { name, message, code } = error as Error & { code?: string }
    // A crash of WebAssembly or Emscripten. Nothing catches the error that is thrown here, so it
    // ends this thread, and the thread is restarted.
    if (name === 'RuntimeError' || name === 'ExitStatus') throw error
    port?.postMessage({ id, error: { message, code } } satisfies PgliteResponse)
  }
}

interface Statement {
  name: string
  /** Type OIDs of the parameters. */
  types: number[]
}

/** The longest array among the parameters of a prepared statement. With a longer array, a statement
 *  needs a plan of its own, with a hash lookup. */
const MAX_PREPARED_ARRAY = 32
/** Module state: the prepared statements of the only connection, by text. */
const statements = new Map<string, Statement>()
let preparedCount = 0

function run(text: string, values: unknown[]): Promise<Results> {
  const hasLongArray = values.some(
    (value) => Array.isArray(value) && value.length > MAX_PREPARED_ARRAY,
  )
  return hasLongArray ? pglite.query(text, values) : runPrepared(text, values)
}

/** Runs a statement with its stored plan: planning a lease takes five times as long as executing
 *  it. */
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
  const name = `statement_${preparedCount++}`
  const described = await exchange(
    serialize.parse({ name, text }),
    serialize.describe({ type: 'S', name }),
    serialize.sync(),
  )
  const statement = { name, types: parse.parseDescribeStatementResults(described) }
  statements.set(text, statement)
  for (const [oldest, { name: oldestName }] of statements) {
    if (statements.size <= MAX_PREPARED_STATEMENTS) break
    statements.delete(oldest)
    await exchange(serialize.close({ type: 'S', name: oldestName }), serialize.sync())
  }
  return statement
}

/** Throws the error of the database. */
async function exchange(
  ...messages: Uint8Array[]
): Promise<Parameters<typeof parse.parseResults>[0]> {
  const { messages: responses } = await pglite.runExclusive(() =>
    pglite.execProtocol(Buffer.concat(messages), { syncToFs: false }),
  )
  return responses
}
