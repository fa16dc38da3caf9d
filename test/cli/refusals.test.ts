/** States in which the service must not start. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startListener } from '../receiver.ts'
import { damageFile, execute, install, runWithModes } from './broken-installations.ts'
import { startFakePostgres } from './fake-postgres.ts'
import { type Ended, type Muster, newMuster, SECRET_KEY } from './muster.ts'
import { SERVE_ENVIRONMENT } from './serving.ts'

interface State {
  state: string
  prepare?(muster: Muster): Promise<unknown>
  environment?: Record<string, string>
  /** Standard error. In it, DATA_DIR stands for the path of the folder. */
  message: string | RegExp
}

const STATES: State[] = [
  {
    state: 'an invalid setting',
    environment: { PORT: 'http' },
    message: 'PORT must be a whole number from 0 to 65535, not "http"',
  },
  {
    state: 'a pool that is too small',
    environment: { DATABASE_POOL_SIZE: '1' },
    message: 'DATABASE_POOL_SIZE must be a whole number from 2 to 1000, not "1"',
  },
  {
    state: 'a direct URL without DATABASE_URL',
    environment: { DATABASE_DIRECT_URL: 'postgres://127.0.0.1/muster' },
    message: 'DATABASE_DIRECT_URL needs DATABASE_URL, which leads to the same database',
  },
  {
    state: 'a standby without DATABASE_URL',
    environment: { DATABASE_READ_URL: 'postgres://127.0.0.1/muster' },
    message: 'DATABASE_READ_URL needs DATABASE_URL, which leads to the primary',
  },
  {
    state: 'several standbys in one URL',
    environment: { DATABASE_READ_URL: 'postgres://a:5432,b/muster' },
    message:
      'DATABASE_READ_URL must name one host without target_session_attrs: ' +
      'a standby, or a proxy in front of several',
  },
  {
    state: 'several hosts without target_session_attrs',
    environment: { DATABASE_URL: 'postgres://a:5432,b/muster', SECRET_KEY },
    message: 'DATABASE_URL has several hosts, so it needs target_session_attrs=read-write',
  },
  {
    state: 'another target_session_attrs',
    environment: { DATABASE_URL: 'postgres://a/muster?target_session_attrs=any', SECRET_KEY },
    message: 'DATABASE_URL allows only read-write as target_session_attrs, not "any"',
  },
  {
    state: 'several hosts, one without a name',
    environment: {
      DATABASE_URL: 'postgres://a,:5433/muster?target_session_attrs=read-write',
      SECRET_KEY,
    },
    message:
      'DATABASE_URL must name hosts and ports as in ' +
      'postgres://muster@a:5432,b:5432/muster?target_session_attrs=read-write',
  },
  {
    state: 'PostgreSQL without a key',
    environment: { DATABASE_URL: 'postgres://127.0.0.1/muster' },
    message:
      'SECRET_KEY is missing: with DATABASE_URL every node needs the same one, of at least 32 characters',
  },
  {
    state: 'a database older than the first release',
    prepare: (muster) => execute(muster, 'create table knex_migrations (id integer)'),
    message:
      'This database is older than the first release of Muster and cannot be upgraded: ' +
      'set DATA_DIR to a new folder, or DATABASE_URL to an empty database.',
  },
  {
    state: 'an edited migration',
    async prepare(muster) {
      await install(muster)
      await execute(muster, `update migrations set checksum = 'x' where name like '%accounts%'`)
    },
    message:
      'The database ran a migration 202611270900_accounts.ts that differs from the one of this version. ' +
      'Start the version of Muster that last ran on this database, or restore a backup.',
  },
  {
    state: 'a missing column',
    async prepare(muster) {
      await install(muster)
      await execute(muster, 'alter table webhooks drop column description')
    },
    message:
      'The schema of the database is not the one that this version of Muster needs. ' +
      'Missing: column webhooks.description. ' +
      'Change the schema back to that of records/schema.sqlite.json, or restore a backup.',
  },
  {
    state: 'another key',
    prepare: install,
    environment: { SECRET_KEY },
    message:
      'SECRET_KEY is not the key that encrypted the signing secrets in the database. Set SECRET_KEY to the key ' +
      'that this installation used before. If the key is lost, see "muster secret-key reset --help".',
  },
  {
    state: 'a lost key file',
    async prepare(muster) {
      await install(muster)
      await rm(join(muster.dataDir, 'secret.key'))
    },
    message:
      /^DATA_DIR\/secret\.key is missing\. .* Restore the file from your backup, or set SECRET_KEY to the key\. .*$/,
  },
  {
    state: 'a truncated key file',
    async prepare(muster) {
      await install(muster)
      const file = join(muster.dataDir, 'secret.key')
      await writeFile(file, (await readFile(file, 'utf8')).slice(0, 20))
    },
    message:
      'DATA_DIR/secret.key is damaged: a key has at least 32 characters. Restore it from your backup.',
  },
  {
    state: 'a database file that is no database',
    async prepare(muster) {
      await install(muster)
      await damageFile(muster)
    },
    message:
      /^The database file DATA_DIR\/muster\.sqlite is damaged: SQLITE_NOTADB: .* restore a backup: see "muster backup --help"\.$/,
  },
  {
    state: 'a database file with damaged pages',
    async prepare(muster) {
      await install(muster)
      await damageFile(muster, 1)
    },
    message:
      /^The database file DATA_DIR\/muster\.sqlite is damaged: SQLITE_CORRUPT: .* restore a backup: see "muster backup --help"\.$/,
  },
  {
    state: 'a DATA_DIR that is a file',
    async prepare({ dataDir }) {
      await rm(dataDir, { recursive: true })
      await writeFile(dataDir, '')
    },
    message: /^DATA_DIR DATA_DIR cannot be created: EEXIST: .*\. Set DATA_DIR to another folder\.$/,
  },
  {
    state: 'an unknown host to listen on',
    prepare: install,
    environment: { HOST: '203.0.113.1' },
    message: /^Cannot listen on HOST 203\.0\.113\.1 and PORT 0: .*\. Change HOST or PORT\.$/,
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

describe('serve exits with status 1 and one message', () => {
  it.each(STATES)('$state', async ({ prepare, environment, message }) => {
    await using muster = await newMuster()
    await prepare?.(muster)
    const ended = await muster.run(['serve'], {
      environment: { ...SERVE_ENVIRONMENT, ...environment },
    })
    const printed = messageOf(ended, muster.dataDir)
    if (typeof message === 'string') expect(printed).toBe(message)
    else expect(printed).toMatch(message)
  })

  it('a port in use', async () => {
    await using muster = await newMuster()
    await install(muster)
    await using other = await startListener()
    const { port } = other
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
  })

  it('PostgreSQL 13', async () => {
    await using muster = await newMuster()
    await using server = await startFakePostgres('130014')
    const environment = { ...SERVE_ENVIRONMENT, DATABASE_URL: server.url, SECRET_KEY }
    expect(messageOf(await muster.run(['serve'], { environment }), muster.dataDir)).toBe(
      'This is PostgreSQL 13, and Muster needs PostgreSQL 14 or newer. ' +
        'Upgrade the server, or set DATABASE_URL to a newer one.',
    )
  })

  it.each([
    ['CockroachDB', 'CockroachDB CCL v25.4.1 (x86_64-pc-linux-gnu, built 2025/11/25)'],
    ['YugabyteDB', 'PostgreSQL 15.12-YB-2025.2.0.0-b0 on x86_64-pc-linux-gnu'],
  ])('%s', async (database, name) => {
    await using muster = await newMuster()
    await using server = await startFakePostgres('150012', name)
    const environment = { ...SERVE_ENVIRONMENT, DATABASE_URL: server.url, SECRET_KEY }
    expect(messageOf(await muster.run(['serve'], { environment }), muster.dataDir)).toBe(
      `This is ${database}, which lacks what Muster needs of PostgreSQL. Set DATABASE_URL to a PostgreSQL server.`,
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
    const ended = await runWithModes(muster, ['serve'], modes, SERVE_ENVIRONMENT)
    expect(messageOf(ended, muster.dataDir)).toMatch(
      /^DATA_DIR DATA_DIR cannot be written: .*\. Let this user write the folder and its files, or set DATA_DIR to another folder\.$/,
    )
  })
})
