/** Follows docs/operations.md word by word on an installation, and checks what deploy/install.sh does. */
import { spawnSync } from 'node:child_process'
import { appendFile, chmod, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { create } from '../crash/load.ts'
import { until } from '../helpers.ts'
import { createDatabase, startPostgres } from '../postgres.ts'
import { type Machine, newMachine, readRunbook } from './machine.ts'

const TIMEOUT = { timeout: 300_000 }
const canFollow =
  process.platform === 'linux' &&
  ['bash', 'curl', 'openssl'].every((program) => !spawnSync(program, ['--version']).error)
if (!canFollow)
  console.log('Skipped: the runbook for systemd needs Linux with bash, curl and openssl.')

/** The tests below follow these chapters. test/crash/restore.test.ts runs pg_dump and pg_restore. */
const FOLLOWED = [
  'systemd',
  'Back up',
  'Restore',
  'Move from SQLite to PostgreSQL',
  'Pause deliveries',
  'Upgrade',
  'Rotate the key',
]
/** Installs packages of a registry. test/records/weeks.test.ts splits tables. */
const NOT_FOLLOWED = ['Traces', 'Weekly partitions']

test('each chapter of the runbook with commands is followed, or listed as one that is not', async () => {
  const chapters = new Set((await readRunbook()).map(({ chapter }) => chapter))
  expect([...chapters].sort()).toEqual([...FOLLOWED, ...NOT_FOLLOWED].sort())
})

const REPLACED: Record<string, string> = {
  EMAIL: 'ann@example.com',
  NUMBER: '60',
  T: '2026-11-21',
  URL: 'https://example.com/',
}

test('each command in the text exists, and has the arguments that it needs', TIMEOUT, async () => {
  await using muster = await newMuster()
  const text = (await readFile('docs/operations.md', 'utf8')).replaceAll(/^ *```.*?^ *```/gms, '')
  const commands = new Set(
    [...text.matchAll(/`muster\s([^`]+)`/g)].map(([, command = '']) => command),
  )
  expect(commands.size).toBeGreaterThan(25)
  for (const command of commands) {
    const words = command.split(/\s+/).map((word) => REPLACED[word] ?? word)
    // A command without arguments is only named. The others are refused, because there is no database.
    const isName = words.every((word) => /^[a-z-]+$/.test(word) && !word.startsWith('-'))
    const { status, stderr } = await muster.run(isName ? ['help', ...words] : words)
    expect(status, `${command}: ${stderr}`).not.toBe(2)
  }
})

/** Installs and starts 1.2.0. Returns the ID and the API key of the first account. */
async function install(machine: Machine): Promise<{ account: string; token: string }> {
  await machine.addVersion('1.2.0')
  await machine.follow('systemd', /install\.sh/)
  await machine.configure({
    DATA_DIR: join(machine.folder, 'var/lib/muster'),
    PORT: new URL(machine.url).port,
    METRICS_PORT: new URL(machine.metricsUrl).port,
    DRAIN_MS: 0,
  })
  const output = await machine.follow('systemd', /doctor|systemctl|journalctl/)
  const [, account = '', token = ''] =
    /export ACCOUNT=(\S+)\s+export MUSTER_API_KEY=(\S+)/.exec(output) ?? []
  return { account, token }
}

async function createParticipant({ url }: Machine, token: string): Promise<void> {
  const response = await create(url, '/participants', { full_name: 'Ann' }, { token })
  expect(response.status).toBe(201)
}

async function countParticipants({ url }: Machine, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` }
  const response = await fetch(`${url}/public/v1/participants`, { headers })
  expect(response.status).toBe(200)
  return ((await response.json()) as { data: unknown[] }).data.length
}

const waitUntilReady = ({ url }: Machine): Promise<true> =>
  until(
    'the service is ready',
    async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true,
    60_000,
  )

async function readMetric({ metricsUrl }: Machine, pattern: RegExp): Promise<string | undefined> {
  const response = await fetch(`${metricsUrl}/metrics`)
  return pattern.exec(await response.text())?.[1]
}

/** Without node_modules, which is that of the repository: its caches change while other tests run. */
async function listFiles({ folder }: Machine): Promise<string[]> {
  const names = await readdir(folder, { recursive: true })
  return names.filter((name) => !name.includes('node_modules/'))
}

const findVersion = (machine: Machine) =>
  readMetric(machine, /^muster_build_info\{version="([^"]*)"/m)

test.skipIf(!canFollow)(
  'embedded: install, back up, pause, rotate the key, upgrade, roll back, restore',
  TIMEOUT,
  async () => {
    await using machine = await newMachine()
    const { account, token } = await install(machine)
    await createParticipant(machine, token)
    await machine.follow('Back up', /systemctl/)
    const [backup = ''] = await readdir(join(machine.folder, 'var/lib/muster-backup'))
    await createParticipant(machine, token)

    await machine.follow('Rotate the key', /secret\.key\.previous/)
    await machine.addVersion('1.3.0')
    await machine.follow('Upgrade', /1\.3\.0/)
    await waitUntilReady(machine)
    expect(await findVersion(machine)).toBe('1.3.0')
    await machine.follow('Upgrade', /1\.2\.0/)
    await waitUntilReady(machine)
    expect(await findVersion(machine)).toBe('1.2.0')
    expect(await countParticipants(machine, token)).toBe(2)

    await machine.follow('Pause deliveries')
    expect(await readMetric(machine, /^muster_deliveries_paused (\d)/m)).toBe('1')
    await machine.follow('Restore', /^(?!pg_restore)/, { BACKUP: backup, ACCOUNT: account })
    expect(await countParticipants(machine, token)).toBe(1)
    expect(await readMetric(machine, /^muster_deliveries_paused (\d)/m)).toBe('0')
  },
)

test.skipIf(!canFollow)('move to PostgreSQL, and rotate SECRET_KEY', TIMEOUT, async () => {
  await using machine = await newMachine()
  const server = await startPostgres()
  try {
    const { token } = await install(machine)
    await createParticipant(machine, token)
    const url = await createDatabase(server.url('postgres'))
    await machine.follow('Move from SQLite to PostgreSQL', /(?:)/, {
      'postgres://muster:PASSWORD@127.0.0.1/muster': url,
    })
    await waitUntilReady(machine)
    await createParticipant(machine, token)
    await machine.follow('Rotate the key', /SECRET_KEY/)
    await waitUntilReady(machine)
    expect(await countParticipants(machine, token)).toBe(2)
  } finally {
    await server.stop()
  }
})

test.skipIf(!canFollow)(
  'install.sh: a second run keeps the settings, and a changed unit',
  async () => {
    await using machine = await newMachine()
    await machine.addVersion('1.2.0')
    const settings = join(machine.folder, 'etc/muster.env')
    const unit = join(machine.folder, 'etc/systemd/system/muster.service')
    await machine.follow('systemd', /install\.sh/)
    expect((await stat(settings)).mode & 0o777).toBe(0o600)
    expect(await readlink(join(machine.folder, 'opt/muster/current'))).toBe('1.2.0')

    await appendFile(settings, 'SIGN_UP=off\n')
    const edited = await readFile(settings, 'utf8')
    await writeFile(unit, '[Service]\n')
    const output = await machine.follow('systemd', /install\.sh/)
    expect(output).toContain('\n1.2.0 is installed.')
    expect(await readFile(settings, 'utf8')).toBe(edited)
    expect(await readFile(`${unit}~`, 'utf8')).toBe('[Service]\n')
    expect(await readFile(unit, 'utf8')).toContain('[Unit]')
  },
)

test.skipIf(!canFollow)('install.sh: names the settings that an older file lacks', async () => {
  await using machine = await newMachine()
  await machine.addVersion('1.2.0')
  const script = join(machine.folder, 'opt/muster/1.2.0/deploy/install.sh')
  const install = () => spawnSync(script, ['--root', machine.folder], { encoding: 'utf8' })
  expect(install()).toMatchObject({ status: 0, stderr: '' })
  expect(install()).toMatchObject({ status: 0, stderr: '' })
  const settings = join(machine.folder, 'etc/muster.env')
  await writeFile(settings, 'BASE_URL=https://example.com\nNODE_ENV=production\n#DATA_DIR=/x\n')
  const { status, stderr } = install()
  expect(status).toBe(0)
  expect(stderr.split('\n')).toEqual([
    `Warning: ${settings} does not set DATA_DIR. A new installation has DATA_DIR=/var/lib/muster.`,
    `Warning: ${settings} does not set METRICS_PORT. A new installation has METRICS_PORT=9464.`,
    '',
  ])
})

test.skipIf(!canFollow)(
  'install.sh: --dry-run changes nothing, and other folders are refused',
  async () => {
    await using machine = await newMachine()
    await machine.addVersion('1.2.0')
    const script = join(machine.folder, 'opt/muster/1.2.0/deploy/install.sh')
    const before = await listFiles(machine)
    const dry = spawnSync(script, ['--root', machine.folder, '--dry-run'], { encoding: 'utf8' })
    expect(dry).toMatchObject({ status: 0, stderr: '' })
    expect(dry.stdout).toContain(
      `install -m 600 deploy/muster.env ${machine.folder}/etc/muster.env\n`,
    )
    expect(dry.stdout).toMatch(/\nNothing was changed\.\n$/)
    expect(spawnSync(script, { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^This version is in .*\/1\.2\.0\. Move it to \/opt\/muster\/VERSION/,
      ),
    })
    const code = join(machine.folder, 'opt/muster/1.2.0')
    await chmod(code, 0o700)
    expect(spawnSync(script, ['--root', machine.folder], { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Only root can read this version\. Run "chmod -R a\+rX /),
    })
    expect(await listFiles(machine)).toEqual(before)
  },
)
