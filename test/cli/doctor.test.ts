import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { damageFile, execute, install, runWithModes } from './broken-installations.ts'
import { startFakePostgres } from './fake-postgres.ts'
import { type Muster, newMuster, SECRET_KEY } from './muster.ts'

interface Finding {
  check: string
  level: string
  text: string
  remedy: string | null
}

async function examine(
  muster: Muster,
  environment: Record<string, string> = {},
): Promise<{ status: number | null; findings: Finding[] }> {
  const { status, stdout, stderr } = await muster.run(['doctor', '--json'], { environment })
  expect(stderr).toBe('')
  const { healthy, findings } = JSON.parse(stdout)
  expect(healthy).toBe(status === 0)
  return { status, findings }
}

interface Defect {
  state: string
  /** Breaks the installation. */
  prepare?(muster: Muster): Promise<unknown>
  environment?: Record<string, string>
  level: 'warning' | 'problem'
  check: string
  text: RegExp
}

const DEFECTS: Defect[] = [
  {
    state: 'an invalid setting',
    environment: { PORT: 'http', ROLE: 'boss' },
    level: 'problem',
    check: 'configuration',
    text: /PORT must be a whole number .* ROLE /,
  },
  {
    state: 'http in production',
    prepare: install,
    environment: { NODE_ENV: 'production', METRICS_PORT: '0' },
    level: 'warning',
    check: 'configuration',
    text: /^BASE_URL is not https/,
  },
  {
    state: 'an installation without a backup',
    prepare: install,
    level: 'warning',
    check: 'backup',
    text: /^There is no backup\.$/,
  },
  {
    state: 'a backup of three days ago',
    async prepare(muster) {
      await install(muster)
      const last = { file: '/backups/old.sqlite', takenAt: Date.now() - 72 * 3_600_000 }
      await writeFile(join(muster.dataDir, 'last-backup.json'), JSON.stringify(last))
    },
    level: 'warning',
    check: 'backup',
    text: /^The last backup is of \S+Z: \/backups\/old\.sqlite\.$/,
  },
  {
    state: 'an unreachable PostgreSQL',
    environment: { DATABASE_URL: 'postgres://127.0.0.1:1/muster', SECRET_KEY },
    level: 'problem',
    check: 'database',
    text: /cannot be reached or is overloaded: .*ECONNREFUSED.* Check DATABASE_URL/,
  },
  {
    state: 'a file that is no database',
    async prepare(muster) {
      await install(muster)
      await damageFile(muster)
    },
    level: 'problem',
    check: 'database',
    text: /is damaged: .* restore a backup/,
  },
  {
    state: 'damaged pages',
    async prepare(muster) {
      await install(muster)
      // The first pages stay, so that the file can be opened.
      await damageFile(muster, 20)
    },
    level: 'problem',
    check: 'database',
    text: /is damaged: /,
  },
  {
    state: 'a missing column',
    async prepare(muster) {
      await install(muster)
      await execute(muster, 'alter table webhooks drop column description')
    },
    level: 'problem',
    check: 'schema',
    text: /Missing: column webhooks\.description\. Change the schema back/,
  },
  {
    state: 'a migration that has not run',
    async prepare(muster) {
      await install(muster)
      await execute(muster, "delete from migrations where name like '%_requests%'")
    },
    level: 'warning',
    check: 'schema',
    text: /^Migrations that have not run: 1\.$/,
  },
  {
    state: 'an additional table',
    async prepare(muster) {
      await install(muster)
      await execute(muster, 'create table notes (id integer)')
    },
    level: 'warning',
    check: 'schema',
    text: /^Muster does not know these parts of the schema: table notes\.$/,
  },
  {
    state: 'a lost key file',
    async prepare(muster) {
      await install(muster)
      await rm(join(muster.dataDir, 'secret.key'))
    },
    level: 'problem',
    check: 'secret key',
    text: /secret\.key is missing\. .* Restore the file from your backup/,
  },
  {
    state: 'a clock in doubt',
    async prepare(muster) {
      await install(muster)
      for (const number of [1, 2])
        await execute(
          muster,
          `insert into clock_spans values (${number}, ${number}, ${number}, 0, 0, 0)`,
        )
    },
    level: 'warning',
    check: 'clock',
    text: /^The clock is in doubt for another 24 h/,
  },
  {
    state: 'a signing secret that no key can read',
    async prepare(muster) {
      await newWebhook(muster)
      await execute(muster, "update webhooks set secret_encrypted = 'v1.x'")
    },
    level: 'problem',
    check: 'webhooks',
    text: /^The signing secrets or headers of these webhooks cannot be read, so their deliveries are paused: [\w-]{36}\.$/,
  },
  {
    state: 'paused deliveries',
    async prepare(muster) {
      await install(muster)
      await muster.json(['deliveries', 'pause'])
    },
    level: 'warning',
    check: 'deliveries',
    text: /^All deliveries have been paused since /,
  },
  {
    state: 'late deliveries without a worker',
    async prepare(muster) {
      await muster.json(['webhook', 'test', await newWebhook(muster)])
      await execute(muster, 'update deliveries set next_attempt_at = 1')
    },
    level: 'problem',
    check: 'deliveries',
    text: /^No worker is running: 1 pending, .* The oldest has been due for \d+ s\.$/,
  },
]

async function newWebhook(muster: Muster): Promise<string> {
  const account = await install(muster)
  const args = ['--account', account, '--url', 'https://example.com/', '--events', '*']
  return (await muster.json(['webhook', 'create', ...args])).id
}

describe('doctor', () => {
  it.each(DEFECTS)('$state: a $level of "$check"', async (defect) => {
    const { prepare, environment, level, check, text: expected } = defect
    await using muster = await newMuster()
    await prepare?.(muster)
    const { status, findings } = await examine(muster, environment)
    const found = findings.filter((finding) => finding.check === check && finding.level === level)
    expect(found.map(({ text }) => text)).toEqual([expect.stringMatching(expected)])
    expect(status).toBe(level === 'problem' ? 1 : 0)
    // One line each. "Report it as a defect" would mean that the check itself failed.
    for (const { text, remedy } of findings) expect(`${text}${remedy}`).not.toMatch(/\n|defect/)
  })

  it('another SECRET_KEY: a problem', async () => {
    await using muster = await newMuster()
    await install(muster)
    const { status, findings } = await examine(muster, { SECRET_KEY })
    expect(status).toBe(1)
    expect(findings.find(({ check }) => check === 'secret key')).toMatchObject({
      level: 'problem',
      text: expect.stringContaining('is not the key that encrypted the signing secrets'),
    })
  })

  it('a PostgreSQL that is too old: a problem', async () => {
    await using muster = await newMuster()
    await using server = await startFakePostgres('120003')
    const { status, findings } = await examine(muster, {
      DATABASE_URL: server.url,
      SECRET_KEY,
    })
    expect([status, findings.at(-1)]).toEqual([
      1,
      expect.objectContaining({ check: 'database', level: 'problem' }),
    ])
  })

  it.each([
    ['folder', { folderMode: 0o555 }],
    ['database file', { folderMode: 0o755, databaseMode: 0o444 }],
  ])('a read-only %s: a problem', async (_, modes) => {
    await using muster = await newMuster()
    await install(muster)
    const { status, stdout, stderr } = await runWithModes(muster, ['doctor'], modes)
    expect([status, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^problem +\w+ +DATA_DIR \S+ cannot be written: .* set DATA_DIR/m)
  })

  it('warns that there is no database, and creates none', async () => {
    await using muster = await newMuster()
    expect(await examine(muster)).toMatchObject({
      status: 0,
      findings: [{ level: 'ok' }, { check: 'database', level: 'warning' }],
    })
    expect(await readdir(muster.dataDir)).toEqual([])
  })
})
