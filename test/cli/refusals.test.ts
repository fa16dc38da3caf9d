/** States in which the service must not start. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { damageFile, execute, install, runAsOwner } from './broken.ts'
import { type Ended, type Muster, newMuster } from './muster.ts'
import { startOldPostgres } from './old-postgres.ts'
import { SERVE_ENVIRONMENT } from './serving.ts'

const KEY = 'a secret key that only tests would ever use'
interface State {
  state: string
  /** Returns settings. */
  prepare(muster: Muster): Promise<unknown>
  /** Standard error. DATA_DIR stands for the folder. */
  says: string | RegExp
}

const STATES: State[] = [
  {
    state: 'an invalid setting',
    prepare: async () => ({ PORT: 'http' }),
    says: 'PORT must be a whole number from 0 to 65535, not "http"',
  },
  {
    state: 'a pool that is too small',
    prepare: async () => ({ DATABASE_POOL_SIZE: '1' }),
    says: 'DATABASE_POOL_SIZE must be a whole number from 2 to 1000, not "1"',
  },
  {
    state: 'a direct URL without DATABASE_URL',
    prepare: async () => ({ DATABASE_DIRECT_URL: 'postgres://127.0.0.1/muster' }),
    says: 'DATABASE_DIRECT_URL needs DATABASE_URL, which leads to the same database',
  },
  {
    state: 'PostgreSQL without a key',
    prepare: async () => ({ DATABASE_URL: 'postgres://127.0.0.1/muster' }),
    says: 'SECRET_KEY is missing: with DATABASE_URL every node needs the same one, of at least 32 characters',
  },
  {
    state: 'a database of version 1.0.0',
    prepare: (muster) => execute(muster, 'create table knex_migrations (id integer)'),
    says:
      'A version before 1.1.0 created this database, and this version cannot upgrade it. ' +
      'Set DATA_DIR to a new folder, or DATABASE_URL to an empty database.',
  },
  {
    state: 'an edited migration',
    async prepare(muster) {
      await install(muster)
      await execute(muster, `update migrations set checksum = 'x' where name like '%records%'`)
    },
    says:
      'The database ran a migration 202611210900_records.ts that differs from the one of this version. ' +
      'Start the version of Muster that last ran on this database, or restore a backup.',
  },
  {
    state: 'a missing column',
    async prepare(muster) {
      await install(muster)
      await execute(muster, 'alter table webhooks drop column description')
    },
    says:
      'The schema of the database is not the one that this version of Muster needs. ' +
      'Missing: column webhooks.description. ' +
      'Change the schema back to that of records/schema.sqlite.json, or restore a backup.',
  },
  {
    state: 'another key',
    async prepare(muster) {
      await install(muster)
      return { SECRET_KEY: KEY }
    },
    says:
      'SECRET_KEY is not the key that encrypted the signing secrets in the database. Set SECRET_KEY to the key ' +
      'that this installation used before. If the key is lost, see "muster secret-key reset --help".',
  },
  {
    state: 'a lost key file',
    async prepare(muster) {
      await install(muster)
      await rm(join(muster.dataDir, 'secret.key'))
    },
    says: /^DATA_DIR\/secret\.key is missing\. .* Restore the file from your backup, or set SECRET_KEY to the key\. .*$/,
  },
  {
    state: 'a cut key file',
    async prepare(muster) {
      await install(muster)
      const file = join(muster.dataDir, 'secret.key')
      await writeFile(file, (await readFile(file, 'utf8')).slice(0, 20))
    },
    says: 'DATA_DIR/secret.key is damaged: a key has at least 32 characters. Restore it from your backup.',
  },
  {
    state: 'a database file that is no database',
    async prepare(muster) {
      await install(muster)
      await damageFile(muster)
    },
    says: /^The database file DATA_DIR\/muster\.sqlite is damaged: SQLITE_NOTADB: .* restore a backup: see "muster backup --help"\.$/,
  },
  {
    state: 'a database file with damaged pages',
    async prepare(muster) {
      await install(muster)
      await damageFile(muster, 1)
    },
    says: /^The database file DATA_DIR\/muster\.sqlite is damaged: SQLITE_CORRUPT: .* restore a backup: see "muster backup --help"\.$/,
  },
  {
    state: 'a DATA_DIR that is a file',
    async prepare(muster) {
      const file = join(muster.dataDir, 'file')
      await writeFile(file, '')
      return { DATA_DIR: file }
    },
    says: /^DATA_DIR DATA_DIR\/file cannot be created: EEXIST: .*\. Set DATA_DIR to another folder\.$/,
  },
  {
    state: 'an unknown host to listen on',
    async prepare(muster) {
      await install(muster)
      return { HOST: '203.0.113.1' }
    },
    says: /^Cannot listen on HOST 203\.0\.113\.1 and PORT 0: .*\. Change HOST or PORT\.$/,
  },
]

/** Standard error without the line break at its end. Throws unless the start was refused in one
 *  message. */
function messageOf({ status, stdout, stderr }: Ended, dataDir: string): string {
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  return stderr.trimEnd().replaceAll(dataDir, 'DATA_DIR')
}

describe('serve is refused with status 1 and one sentence', () => {
  it.each(STATES)('$state', async ({ prepare, says }) => {
    await using muster = await newMuster()
    const settings = (await prepare(muster)) as Record<string, string> | undefined
    const ended = await muster.run(['serve'], {
      environment: { ...SERVE_ENVIRONMENT, ...settings },
    })
    const message = messageOf(ended, muster.dataDir)
    if (typeof says === 'string') expect(message).toBe(says)
    else expect(message).toMatch(says)
  })

  it('a port in use', async () => {
    await using muster = await newMuster()
    await install(muster)
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    for (const [setting, environment] of [
      ['PORT', { PORT: String(port) }],
      ['METRICS_PORT', { PORT: '0', METRICS_PORT: String(port) }],
    ] as const) {
      const ended = await muster.run(['serve'], {
        environment: { ...SERVE_ENVIRONMENT, ...environment },
      })
      expect(messageOf(ended, muster.dataDir)).toBe(
        `Port ${port} of 127.0.0.1 is already in use. Set ${setting} to another port.`,
      )
    }
    await new Promise((resolve) => taken.close(resolve))
  })

  it('PostgreSQL 13', async () => {
    await using muster = await newMuster()
    await using server = await startOldPostgres('130014')
    const environment = { ...SERVE_ENVIRONMENT, DATABASE_URL: server.url, SECRET_KEY: KEY }
    expect(messageOf(await muster.run(['serve'], { environment }), muster.dataDir)).toBe(
      'This is PostgreSQL 13, and Muster needs PostgreSQL 14 or newer. ' +
        'Upgrade the server, or set DATABASE_URL to a newer one.',
    )
  })

  it.each([
    ['a read-only folder without files', 0o555, false],
    ['a read-only folder with a database', 0o555, true],
    ['a read-only database file', 0o755, true],
  ])('%s', async (_, folderMode, hasDatabase) => {
    await using muster = await newMuster()
    if (hasDatabase) await install(muster)
    const modes = { folderMode, databaseMode: hasDatabase ? 0o444 : undefined }
    const ended = await runAsOwner(muster, ['serve'], modes, SERVE_ENVIRONMENT)
    expect(messageOf(ended, muster.dataDir)).toMatch(
      /^DATA_DIR DATA_DIR cannot be written: .*\. Let this user write the folder and its files, or set DATA_DIR to another folder\.$/,
    )
  })
})
