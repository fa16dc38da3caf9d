/** Every command where there is no database, and on a database without the last migration: only some
 *  may create a database or change its schema. */
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Knex } from 'knex'
import { describe, expect, inject, it } from 'vitest'
import { PROGRAM } from '../../cli/main.ts'
import { listLeafCommands, newProgram } from '../../cli/program.ts'
import { newShell } from '../../cli/shell.ts'
import { readMigrations } from '../../records/database/migration-files.ts'
import { type DatabaseOptions, type Db, openDatabase } from '../../records/database/open.ts'
import { readSchema } from '../../records/database/schema.ts'
import { type Muster, newMuster } from '../cli/muster.ts'
import { databaseUrlOf, newDatabase } from '../helpers.ts'

const CREATORS = ['serve', 'dev', 'migrate', 'account create']
/** Some commands run until a signal, or for minutes. They have opened the database by then. */
const MAX_RUN_MS = 4_000
/** Fewer refusals mean that the commands did not get as far as the database. */
const MIN_REFUSALS = 35

/** The first example of a command, without `muster`. */
function exampleOf(command: Command): string[] {
  let help = ''
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
  const [, line = ''] = /^ +\$ (?:\w+=\S+ )*muster (.*)$/m.exec(help) ?? []
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
  return words.map(([, single, double, plain]) => single ?? double ?? plain ?? '')
}

async function listExamples(): Promise<string[][]> {
  const shell = newShell({})
  const names = (await newProgram(PROGRAM, shell, [])).commands.map((command) => command.name())
  const commands = listLeafCommands(await newProgram(PROGRAM, shell, names))
  return commands
    .map(exampleOf)
    .filter(
      ([first = '', second = '']) =>
        !CREATORS.some((name) => [first, `${first} ${second}`].includes(name)),
    )
}

/** Runs each command, and calls `check` after it. Returns the messages of the refusals. */
async function runAll(
  muster: Muster,
  environment: Record<string, string>,
  check: (name: string) => Promise<void>,
): Promise<string[]> {
  const messages: string[] = []
  const examples = await listExamples()
  expect(examples.length).toBeGreaterThan(45)
  for (const args of examples) {
    const options = {
      environment: { DATA_DIR: '', ...environment },
      cwd: muster.dataDir,
      input: 'x',
    }
    const started = muster.start(args, options)
    const timer = setTimeout(() => started.process.kill('SIGTERM'), MAX_RUN_MS)
    const { status, stderr } = await started.ended
    clearTimeout(timer)
    if (status === 1) messages.push(stderr)
    await check(args.join(' '))
  }
  return messages
}

async function withDatabase<T>(options: DatabaseOptions, work: (db: Db) => Promise<T>): Promise<T> {
  const db = openDatabase(options)
  return work(db).finally(() => db.close())
}

async function migrateExceptLast({ dialect, write }: Db): Promise<void> {
  await write.raw(
    'create table migrations (name text primary key, checksum text not null, applied_at bigint not null)',
  )
  for (const { name, checksum, load } of (await readMigrations()).slice(0, -1)) {
    const { up, isConcurrent } = await load()
    const run = async (knex: Knex): Promise<void> => {
      await up(knex)
      await knex('migrations').insert({ name, checksum, applied_at: 0 })
    }
    await (isConcurrent && dialect === 'postgres' ? run(write) : write.transaction(run))
  }
}

const readState = (options: DatabaseOptions) =>
  withDatabase(options, async (db) => ({
    schema: await readSchema(db),
    migrations: (await db.write.schema.hasTable('migrations'))
      ? await db.read('migrations').select('name').orderBy('name')
      : undefined,
  }))

const isRefusal = (text: RegExp) => (message: string) => text.test(message)
const NO_DATABASE = /^There is no database of Muster in .* Set DATA_DIR or DATABASE_URL/
const PENDING =
  /^The database in .* is older than this version: it lacks 1 migration\..*muster migrate/

describe.skipIf(inject('database') !== 'sqlite')('commands in embedded mode', () => {
  it('in an empty folder: no command creates DATA_DIR', { timeout: 300_000 }, async () => {
    await using muster = await newMuster()
    const messages = await runAll(muster, {}, async (name) => {
      expect(await readdir(muster.dataDir), name).not.toContain('data')
    })
    expect(messages.filter(isRefusal(NO_DATABASE)).length).toBeGreaterThanOrEqual(MIN_REFUSALS)
  })

  it('without the last migration: no command changes it', { timeout: 300_000 }, async () => {
    await using muster = await newMuster()
    const dataDir = join(muster.dataDir, 'data')
    await mkdir(dataDir)
    await withDatabase({ dataDir }, migrateExceptLast)
    const before = await readState({ dataDir })
    const messages = await runAll(muster, {}, async (name) => {
      const files = (await readdir(dataDir)).filter((file) => file !== 'last-backup.json')
      expect(files, name).toEqual(['muster.sqlite'])
      expect(await readState({ dataDir }), name).toEqual(before)
    })
    expect(messages.filter(isRefusal(PENDING)).length).toBeGreaterThanOrEqual(MIN_REFUSALS)
  })
})

describe.skipIf(inject('database') !== 'postgres')('commands on PostgreSQL', () => {
  it.each([
    ['an empty database', async () => undefined, NO_DATABASE],
    ['a database without the last migration', migrateExceptLast, PENDING],
  ])('%s: no command changes it', { timeout: 300_000 }, async (_, prepare, refusal) => {
    await using database = await newDatabase('postgres')
    await using muster = await newMuster()
    const options = { databaseUrl: databaseUrlOf(database) }
    await withDatabase(options, prepare)
    const before = await readState(options)
    const messages = await runAll(
      muster,
      database.environment as Record<string, string>,
      async (name) => {
        expect(await readdir(muster.dataDir), name).not.toContain('data')
        expect(await readState(options), name).toEqual(before)
      },
    )
    expect(messages.filter(isRefusal(refusal)).length).toBeGreaterThanOrEqual(MIN_REFUSALS)
  })
})
