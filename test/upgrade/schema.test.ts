/** Databases and migrations that are not the expected ones: `migrate` and `serve` refuse them, or
 *  warn of them. */
import { describe, expect, inject, test } from 'vitest'
import { startApp, until } from '../helpers.ts'
import { copyOfRepository } from '../scripts/tree.ts'
import { newMusterDatabase } from './muster-database.ts'

const dialect = inject('database')
/** A node compares the schema again after at most 10 s. The tests wait longer, for a busy
 *  machine. */
const RECHECK_MS = 30_000
const FIRST_MIGRATION = '202611270900_accounts.ts'

const refused = (message: string) => ({ status: 1, stdout: '', stderr: `${message}\n` })

describe('migrate', () => {
  test.each([
    [['create table knex_migrations (name text)']],
    [
      [
        'create table migrations (name text, checksum text, applied_at bigint)',
        "insert into migrations values ('202611210900_records.ts', 'x', 0)",
      ],
    ],
  ])(
    'a database older than the first release: refused and not changed (%j)',
    async (statements) => {
      await using database = await newMusterDatabase()
      await database.execute(...statements)
      const before = await database.readContents()
      const refusal =
        'This database is older than the first release of Muster and cannot be upgraded: ' +
        'set DATA_DIR to a new folder, or DATABASE_URL to an empty database.'
      expect(await database.run('migrate')).toEqual(refused(refusal))
      expect(await database.run('serve')).toEqual(refused(refusal))
      expect(await database.run('account', 'list')).toEqual(refused(refusal))
      expect(await database.run('doctor')).toMatchObject({
        status: 1,
        stdout: expect.stringContaining(refusal),
      })
      expect(await database.readContents()).toEqual(before)
    },
  )

  test('a migration of the database is unknown, or differs from that of this version: refused', async () => {
    await using database = await newMusterDatabase()
    await database.run('migrate')
    const refusal = (name: string) =>
      refused(
        `The database ran a migration ${name} that differs from the one of this version. ` +
          'Start the version of Muster that last ran on this database, or restore a backup.',
      )
    const unknown = '202611270900_other.ts'
    await database.execute(`insert into migrations values ('${unknown}', 'x', 0)`)
    expect(await database.run('migrate')).toEqual(refusal(unknown))
    await database.execute(
      `delete from migrations where name = '${unknown}'`,
      `update migrations set checksum = 'x' where name = '${FIRST_MIGRATION}'`,
    )
    expect(await database.run('serve')).toEqual(refusal(FIRST_MIGRATION))
  })

  test.runIf(dialect === 'sqlite')(
    'the file of a migration has changed or is missing: refused',
    async () => {
      await using tree = await copyOfRepository()
      await tree.replace(`records/migrations/${FIRST_MIGRATION}`, "'full_name'", "'whole_name'")
      expect(await tree.run('bin/muster.js', ['migrate'])).toEqual({
        status: 1,
        output:
          `records/migrations/${FIRST_MIGRATION} has changed since it landed. Restore the file, or install this ` +
          'version of Muster again. To change the tables, add a migration.\n',
      })
      await tree.remove(`records/migrations/${FIRST_MIGRATION}`)
      const { status, output } = await tree.run('bin/muster.js', ['migrate'])
      expect([status, output]).toEqual([
        1,
        expect.stringContaining(
          `records/migrations/${FIRST_MIGRATION} is missing. Restore the file`,
        ),
      ])
    },
  )
})

describe('the schema', () => {
  test('missing or different objects: serve and migrate name them and end with 1', async () => {
    await using database = await newMusterDatabase()
    await database.run('migrate')
    await database.execute(
      'alter table leases rename to other_leases',
      'drop index deliveries_waiting',
      'drop index tasks_by_title',
      'create index tasks_by_title on tasks (account_id, id)',
      'alter table jobs rename column description to details',
    )
    const refusal = refused(
      'The schema of the database is not the one that this version of Muster needs. ' +
        'Missing: index deliveries_waiting, column jobs.description, table leases. ' +
        'Different: index tasks_by_title. ' +
        `Change the schema back to that of records/schema.${dialect}.json, or restore a backup.`,
    )
    expect(await database.run('migrate')).toEqual(refusal)
    expect(await database.run('serve')).toEqual(refusal)
  })

  test.runIf(dialect === 'postgres')(
    'without the extension for searches: doctor warns, and serve starts, also with indexes of the operator',
    async () => {
      await using database = await newMusterDatabase()
      await database.run('migrate')
      await database.execute('drop extension pg_trgm cascade')
      const { status, stdout } = await database.run('doctor')
      expect([status, stdout]).toEqual([
        0,
        expect.stringMatching(
          /^warning +schema +Searches read .* lacks index jobs_search, index participants_search\.\n.*"Search" in docs/m,
        ),
      ])
      await database.execute(
        'create extension pg_trgm',
        'create index jobs_search on jobs using gin (search_text gin_trgm_ops)',
      )
      expect((await database.run('doctor')).stdout).toContain('lacks index participants_search.')
      const { ready } = await database.serve()
      await until('ready', async () => (await fetch(`${ready.url}/readyz`)).status === 200)
    },
  )

  test('objects, keys and indexes of a newer version: serve logs one warning that names them, and is ready', async () => {
    await using database = await newMusterDatabase()
    await database.run('migrate')
    await database.execute(
      `insert into migrations values ('999912312359_later.ts', 'x', 0)`,
      'create table later (id integer primary key)',
      'alter table accounts add column colour text',
      'drop index tasks_by_title',
      'drop index jobs_by_title',
      'create unique index jobs_by_title on jobs (account_id, title, id)',
    )
    const { ready, output } = await database.serve()
    await until('ready', async () => (await fetch(`${ready.url}/readyz`)).status === 200)
    const warnings = output.stderr.split('\n').filter((line) => line.includes('additional'))
    expect(warnings.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        level: 'warn',
        additional: ['column accounts.colour', 'table later'],
        msg: expect.stringContaining('Remove them, unless a newer version or you added them'),
      }),
    ])
  })

  test('a running service: /readyz is 503 from the time that an index is dropped until it is created again', async () => {
    const lines: { level: string; msg: string }[] = []
    const logTo = { write: (line: string) => void lines.push(JSON.parse(line)) }
    await using app = await startApp({ logLevel: 'info', logTo })
    const readyz = () => app.call('GET', '/readyz')
    expect((await readyz()).status).toBe(200)

    await app.db.write.raw('drop index jobs_by_title')
    const response = await until(
      'a 503',
      async () => {
        const found = await readyz()
        return found.status === 503 && found
      },
      RECHECK_MS,
    )
    expect(JSON.parse(response.text)).toEqual({ status: 'not ready', reasons: ['schema'] })
    expect(lines.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ msg: expect.stringContaining('Missing: index jobs_by_title.') }),
    ])

    await app.db.write.raw('create index jobs_by_title on jobs (account_id, title, id)')
    await until('ready again', async () => (await readyz()).status === 200, RECHECK_MS)
  })
})
