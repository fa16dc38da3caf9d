import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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
    expect(backup).toEqual({ file, byte_size: size })
    expect(mode & 0o777).toBe(0o600)
    expect(await readdir(restored.dataDir)).toEqual(['muster.sqlite'])

    const db = openDatabase({ dataDir: restored.dataDir })
    expect(await listAccountIds(db.read)).toEqual([account])
    await db.close()
  })

  it('refuses an existing file, a missing folder, and PostgreSQL', async () => {
    await using muster = await newMuster()
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

    const environment = { DATABASE_URL: 'postgres://127.0.0.1:1/muster', SECRET_KEY }
    const { status, stderr } = await muster.run(['backup', file], { environment })
    expect(status).toBe(1)
    expect(stderr).toContain('pg_dump')
  })
})
