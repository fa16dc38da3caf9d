/** `muster doctor` beside a running service. */
import { join } from 'node:path'
import { expect, inject, it } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { databaseUrlOf, newDatabase } from '../helpers.ts'

it('doctor: every check of a healthy service is ok', async () => {
  await using database = await newDatabase()
  await using muster = await newMuster()
  const options = { environment: database.environment }
  const serving = await startServing(muster, options)
  const isEmbedded = 'DATA_DIR' in database.environment
  if (isEmbedded) await muster.json(['backup', join(muster.dataDir, 'backup.sqlite')], options)
  const { status, stdout, stderr } = await muster.run(['doctor'], options)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const [headings = '', ...lines] = stdout.trimEnd().split('\n')
  expect(headings).toMatch(/^LEVEL +CHECK +FINDING$/)
  const column = headings.indexOf('FINDING')
  expect(lines.map((line) => line.slice(0, column).trim().split(/ {2,}/))).toEqual([
    ['ok', 'configuration'],
    ['ok', 'database'],
    ['ok', 'connections'],
    ['ok', 'disk'],
    ...(isEmbedded ? [['ok', 'backup']] : []),
    ['ok', 'schema'],
    ['ok', 'clock'],
    ['ok', 'secret key'],
    ['ok', 'accounts'],
    ['ok', 'webhooks'],
    ['ok', 'deliveries'],
    ['ok', 'bulk jobs'],
  ])
  expect(stdout).toContain('Accounts: 1, suspended: 0, being deleted: 0.')
  expect(stdout).toContain(
    'A worker is running: 0 pending, 0 retrying, 0 failed, 0 due in the queue.',
  )
  serving.process.kill('SIGINT')
  await serving.ended
})

it.skipIf(inject('database') !== 'postgres')(
  'doctor: reports settings of PostgreSQL that lose data or text',
  async () => {
    await using database = await newDatabase('postgres')
    await using muster = await newMuster()
    const { environment } = database
    const databaseUrl = databaseUrlOf(database)
    const db = openDatabase({ databaseUrl })
    const name = new URL(databaseUrl).pathname.slice(1)
    await db.write.raw(`alter database ${name} set synchronous_commit = off`)
    await db.write.raw(`create database ${name}_ascii template template0 encoding 'SQL_ASCII'`)
    await db.close()
    const relaxed = await muster.run(['doctor'], { environment })
    expect(relaxed.status).toBe(0)
    expect(relaxed.stdout).toMatch(/^warning +database +synchronous_commit is off/m)
    expect(relaxed.stdout).toMatch(/^warning +schema +Migrations that have not run: \d+\.$/m)

    const ascii = { ...environment, DATABASE_URL: `${databaseUrl}_ascii` }
    const { status, stdout } = await muster.run(['doctor'], { environment: ascii })
    expect(status).toBe(1)
    expect(stdout).toMatch(/^problem +database +The encoding of the database is SQL_ASCII/m)
  },
)
