/** The programs of the cluster: packages of Debian, and Patroni from PyPI in a folder outside of the
 *  repository. */
import { execFile } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { promisify } from 'node:util'

export interface Programs {
  etcd: string
  haproxy: string
  patroni: string
  patronictl: string
  /** The folder of the programs of PostgreSQL. */
  postgres: string
}

const run = promisify(execFile)
const PATRONI = '4.1.5'
const PACKAGES = ['etcd-server', 'haproxy', 'postgresql', 'python3-venv']
/** Any user can read it: Patroni does not run as root. */
const CACHE = `/var/tmp/muster-patroni-${PATRONI}`
const INSTALL_TIMEOUT_MS = 240_000
/** Patroni needs a Python that other users than root can run. */
const PYTHON = '/usr/bin/python3'

/** A sentence: why the programs are not here. */
export class NotInstallable extends Error {}

export async function installPrograms(progress: (text: string) => void): Promise<Programs> {
  const etcd = '/usr/bin/etcd'
  const haproxy = '/usr/sbin/haproxy'
  if (![etcd, haproxy, PYTHON].every(existsSync) || !(await findPostgres())) {
    progress(`installing ${PACKAGES.join(', ')}`)
    await installPackages()
  }
  const postgres = await findPostgres()
  if (!postgres) throw new NotInstallable('PostgreSQL with pg_rewind is not installed.')
  const patroni = `${CACHE}/bin/patroni`
  if (!existsSync(patroni)) {
    progress(`installing Patroni ${PATRONI} into ${CACHE}`)
    await installPatroni()
  }
  return { etcd, haproxy, postgres, patroni, patronictl: `${CACHE}/bin/patronictl` }
}

async function findPostgres(): Promise<string | undefined> {
  const { stdout } = await run('pg_config', ['--bindir']).catch(() => ({ stdout: '' }))
  const folder = stdout.trim()
  if (folder !== '' && existsSync(`${folder}/pg_rewind`)) return folder
  // Debian's pg_config is in another package than the server.
  return ['18', '17', '16', '15', '14']
    .map((version) => `/usr/lib/postgresql/${version}/bin`)
    .find((each) => existsSync(`${each}/pg_rewind`))
}

async function installPackages(): Promise<void> {
  if (!existsSync('/usr/bin/apt-get') || process.getuid?.() !== 0)
    throw new NotInstallable(`${PACKAGES.join(', ')}: installing them needs apt-get and root.`)
  const command = `apt-get update && apt-get install -y --no-install-recommends ${PACKAGES.join(' ')}`
  await install('sh', ['-c', command], `${PACKAGES.join(', ')} cannot be installed`)
}

async function installPatroni(): Promise<void> {
  try {
    const failure = `Patroni ${PATRONI} cannot be installed`
    await install(PYTHON, ['-m', 'venv', CACHE], failure)
    const packages = [`patroni[etcd3]==${PATRONI}`, 'psycopg[binary]']
    await install(`${CACHE}/bin/pip`, ['install', '--quiet', ...packages], failure)
  } catch (error) {
    rmSync(CACHE, { recursive: true, force: true })
    throw error
  }
}

async function install(program: string, args: string[], failure: string): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  try {
    await run(program, args, { env, timeout: INSTALL_TIMEOUT_MS })
  } catch (cause) {
    const lines = String((cause as { stderr?: string }).stderr ?? cause).trim()
    throw new NotInstallable(`${failure}: ${lines.split('\n').at(-1)}`, { cause })
  }
}
