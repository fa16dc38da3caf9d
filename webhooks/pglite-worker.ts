/** Embedded PostgreSQL, in memory, on a thread of its own: it is synchronous and would hold up every request. */
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'

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
export type PgliteAnswer = { id: number } & ({ rows: unknown[][] } | { error: { message: string; code?: string } })

const port = parentPort
if (!port) throw new Error('This file is the start of a worker thread')

const { cacheDir, settings } = workerData as PgliteOptions
const pglite = await start(cacheDir)
await pglite.exec(
  Object.entries(settings)
    .map(([name, value]) => `set ${name} = ${value};`)
    .join(' '),
)

port.on('message', async ({ id, text, values }: PgliteCall) => {
  try {
    const results = values ? [await pglite.query(text, values)] : await pglite.exec(text)
    port.postMessage({ id, rows: results.map((result) => result.rows) } satisfies PgliteAnswer)
  } catch (error) {
    const { message, code } = error as Error & { code?: string }
    port.postMessage({ id, error: { message, code } } satisfies PgliteAnswer)
  }
})
port.postMessage('ready')

async function start(cacheDir: string | undefined): Promise<PGlite> {
  if (cacheDir === undefined) return PGlite.create()
  const packageFile = join(dirname(fileURLToPath(import.meta.resolve('@electric-sql/pglite'))), '..', 'package.json')
  const { version } = JSON.parse(await readFile(packageFile, 'utf8')) as { version: string }
  const file = join(cacheDir, `queue-${version}.tar.gz`)
  const kept = await readFile(file).catch(() => undefined)
  if (kept) {
    try {
      return await PGlite.create({ loadDataDir: new Blob([kept]) })
    } catch {
      // A damaged file is as good as none.
      await rm(file, { force: true })
    }
  }
  const fresh = await PGlite.create()
  // A quicker next start is worth a try, no more. Renamed into place, so that it is there whole or not at all.
  try {
    const draft = `${file}.${randomUUID()}`
    await mkdir(cacheDir, { recursive: true })
    await writeFile(draft, await (await fresh.dumpDataDir('gzip')).bytes(), { flush: true })
    await rename(draft, file)
  } catch {}
  return fresh
}
