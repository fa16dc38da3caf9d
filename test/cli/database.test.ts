import { readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { listAccountIds } from '../../records/accounts.ts'
import { openDatabase } from '../../records/database/open.ts'
import { newAccount, newMuster, SECRET_KEY } from './muster.ts'

describe('migrate', () => {
  it('lists the migrations that it ran, and runs each once', async () => {
    await using muster = await newMuster()
    const { migrations } = await muster.json(['migrate'])
    expect(migrations).toContain('202611270900_accounts.ts')
    expect(await muster.json(['migrate'])).toEqual({ migrations: [] })
    expect(await muster.run(['migrate'])).toEqual({
      status: 0,
      stdout: 'The tables are up to date.\n',
      stderr: '',
    })
  })

  it('--weekly: refused without PostgreSQL', async () => {
    await using muster = await newMuster()
    expect(await muster.run(['migrate', '--weekly'])).toEqual({
      status: 1,
      stdout: '',
      stderr: 'Only PostgreSQL has partitions. DATABASE_URL is not set.\n',
    })
  })

  it('runs each migration once when several processes start at the same time', async () => {
    await using muster = await newMuster()
    const documents: { migrations: string[] }[] = await Promise.all(
      [1, 2, 3].map(() => muster.json(['migrate'])),
    )
    const migrations = documents.flatMap((document) => document.migrations)
    expect(migrations).toContain('202611270900_accounts.ts')
    expect(new Set(migrations).size).toBe(migrations.length)
  })
})

describe('backup', () => {
  it('copies the records into a file that only its owner can read', async () => {
    await using muster = await newMuster()
    const { account_id: account } = await newAccount(muster)
    await using restored = await newMuster()
    const file = join(restored.dataDir, 'muster.sqlite')

    const backup = await muster.json(['backup', file])
    const { size, mode } = await stat(file)
    expect(backup).toEqual({
      file,
      byte_size: size,
      accounts: 1,
      newest_event_at: null,
      deleted: [],
    })
    expect(mode & 0o777).toBe(0o600)
    expect(await readdir(restored.dataDir)).toEqual(['muster.sqlite'])

    const db = openDatabase({ dataDir: restored.dataDir })
    expect(await listAccountIds(db.read)).toEqual([account])
    await db.close()
  })

  it('keeps the newest backups of a folder, and leaves other files alone', async () => {
    await using muster = await newMuster()
    await using folder = await newMuster()
    await muster.run(['migrate'])
    const others = ['muster.sqlite', 'muster-20260101T000000Z.sqlite.gz', 'muster-2026.sqlite']
    const old = ['muster-20260101T000000Z.sqlite', 'muster-20260102T000000Z.sqlite']
    for (const name of [...others, ...old]) await writeFile(join(folder.dataDir, name), '')
    const { file, deleted } = await muster.json(['backup', '--keep', '2', folder.dataDir])
    expect(deleted).toEqual([join(folder.dataDir, 'muster-20260101T000000Z.sqlite')])
    expect((await readdir(folder.dataDir)).sort()).toEqual(
      [...others, 'muster-20260102T000000Z.sqlite', basename(file)].sort(),
    )
  })

  it('keeps the new backup when the clock was ahead at an earlier one', async () => {
    await using muster = await newMuster()
    await using folder = await newMuster()
    await muster.run(['migrate'])
    const names = ['muster-20260102T000000Z.sqlite', 'muster-20990101T000000Z.sqlite']
    for (const name of names) await writeFile(join(folder.dataDir, name), '')
    const { file, deleted } = await muster.json(['backup', '--keep', '2', folder.dataDir])
    expect(deleted).toEqual([join(folder.dataDir, 'muster-20990101T000000Z.sqlite')])
    expect((await readdir(folder.dataDir)).sort()).toEqual([names[0], basename(file)])
  })

  it('deletes what a killed backup has left, but not the file of another backup that runs', async () => {
    await using muster = await newMuster()
    await using folder = await newMuster()
    await muster.run(['migrate'])
    const step = join(import.meta.dirname, 'kill-at.ts')
    const [killed = '', running = ''] = await Promise.all(
      ['killed', 'running'].map(async (name) => {
        const file = join(folder.dataDir, name)
        const environment = { NODE_OPTIONS: `--import ${step}`, KILL_AT: '1' }
        expect(await muster.run(['backup', file], { environment })).toMatchObject({ status: null })
        return (await readdir(folder.dataDir)).find((draft) => draft.startsWith(name))
      }),
    )
    expect(killed).toMatch(/\.partial$/)
    const yesterday = Date.now() / 1_000 - 24 * 60 * 60
    await writeFile(join(folder.dataDir, `${killed}-journal`), '')
    for (const name of [killed, `${killed}-journal`])
      await utimes(join(folder.dataDir, name), yesterday, yesterday)
    await muster.run(['backup', join(folder.dataDir, 'new')])
    expect((await readdir(folder.dataDir)).sort()).toEqual(['new', running])
  })

  it('deletes a damaged copy, keeps the earlier backups, and says what is damaged', async () => {
    await using muster = await newMuster()
    await using folder = await newMuster()
    await newAccount(muster)
    const earlier = join(folder.dataDir, 'muster-20260101T000000Z.sqlite')
    await writeFile(earlier, '')
    const path = join(muster.dataDir, 'muster.sqlite')
    const source = new DatabaseSync(path, { enableForeignKeyConstraints: false })
    source.exec("update users set account_id = 'nowhere'")
    source.close()
    const { status, stdout, stderr } = await muster.run(['backup', '--keep', '1', folder.dataDir])
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^The copy is damaged, so it was deleted: a row of users points to/)
    expect(await readdir(folder.dataDir)).toEqual([basename(earlier)])
    expect(await readdir(muster.dataDir)).not.toContain('last-backup.json')
    // The error tells the operator to run this command.
    const doctor = await muster.run(['doctor'])
    expect(doctor.status).toBe(1)
    expect(doctor.stdout).toContain('is damaged: a row of users points to a missing row')
  })

  it('refuses an existing file, a missing folder, and PostgreSQL', async () => {
    await using muster = await newMuster()
    await muster.run(['migrate'])
    const file = join(muster.dataDir, 'there')
    await writeFile(file, 'precious')
    expect(await muster.run(['backup', file])).toEqual({
      status: 1,
      stdout: '',
      stderr: `${file} already exists. Choose another file name.\n`,
    })
    const nowhere = join(muster.dataDir, 'nowhere', 'file')
    expect(await muster.run(['backup', nowhere])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('nowhere/file does not exist. Create it first.'),
    })

    expect(await muster.run(['backup', '--keep', '1', file])).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^\S+\.sqlite cannot be written: ENOTDIR/),
    })

    const environment = { DATABASE_URL: 'postgres://127.0.0.1:1/muster', SECRET_KEY }
    const { status, stderr } = await muster.run(['backup', file], { environment })
    expect(status).toBe(1)
    expect(stderr).toContain('pg_dump')
  })
})
