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

/** The text of a lease statement contains the batch size, which has about forty values. */
const MAX_STATEMENTS = 60

// V8 would optimize one large function of PostgreSQL for 2 s with 600 MB of memory, which saves no
// CPU time of deliveries. The flags are those of the process, but only WebAssembly that is compiled
// later obeys them.
for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']) setFlagsFromString(flag)

const port = parentPort
if (!port) throw new Error('This file must run in a worker thread')

// Module state: this thread runs one database, with one connection and its prepared statements.
const pglite = await PGlite.create({
  ...START_OPTIONS,
  loadDataDir: new Blob([await readFile(EMPTY_DATABASE)], { type: 'application/gzip' }),
})
let last = Promise.resolve()
port.on('message', (request: PgliteRequest) => {
  // One after the other: a statement must not be closed between its preparation and its execution.
  last = last.then(() => respond(request))
})
port.postMessage('ready')

async function respond({ id, text, values }: PgliteRequest): Promise<void> {
  try {
    const results = values ? [await run(text, values)] : await pglite.exec(text)
    port?.postMessage({ id, rows: results.map((result) => result.rows) } satisfies PgliteResponse)
  } catch (error) {
    const { name, message, code } = error as Error & { code?: string }
    // A crash of WebAssembly or Emscripten. It must end this thread too, so that the thread is
    // restarted.
    if (name === 'RuntimeError' || name === 'ExitStatus') throw error
    port?.postMessage({ id, error: { message, code } } satisfies PgliteResponse)
  }
}

interface Statement {
  name: string
  /** Type OIDs of the parameters. */
  types: number[]
}

/** Longer lists need a plan of their own, with a hash lookup. */
const MAX_PREPARED_LIST = 32
/** Module state: the prepared statements of the only connection, by text. */
const statements = new Map<string, Statement>()
let prepared = 0

function run(text: string, values: unknown[]): Promise<Results> {
  const hasLongList = values.some(
    (value) => Array.isArray(value) && value.length > MAX_PREPARED_LIST,
  )
  return hasLongList ? pglite.query(text, values) : runPrepared(text, values)
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
  const name = `statement_${prepared++}`
  const described = await exchange(
    serialize.parse({ name, text }),
    serialize.describe({ type: 'S', name }),
    serialize.sync(),
  )
  const statement = { name, types: parse.parseDescribeStatementResults(described) }
  statements.set(text, statement)
  for (const [oldest, { name: oldestName }] of statements) {
    if (statements.size <= MAX_STATEMENTS) break
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
