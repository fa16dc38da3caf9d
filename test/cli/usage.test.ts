import { execFileSync } from 'node:child_process'
import { chmod, chown, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { openDatabase } from '../../records/database/open.ts'
import { NOBODY } from '../postgres.ts'
import {
  accountOptions,
  BIN,
  type Muster,
  newAccount,
  newMuster,
  SECRET_KEY,
  waitForDocument,
  waitForOutput,
} from './muster.ts'
import { otherNodes } from './nodes.ts'

/** The words and arguments of every command. */
const COMMANDS = [
  ['serve'],
  ['dev'],
  ['migrate'],
  ['doctor'],
  ['backup', '<path>'],
  ['copy'],
  ['generate'],
  ['lint', '[folder]'],
  ['docs'],
  ['diff', '[base]'],
  ['contract'],
  ['account', 'create'],
  ['account', 'list'],
  ['account', 'suspend', '<account>'],
  ['account', 'resume', '<account>'],
  ['account', 'quota', '<account>'],
  ['account', 'delete', '<account>'],
  ['user', 'create'],
  ['user', 'list'],
  ['user', 'update'],
  ['user', 'link'],
  ['user', 'deactivate'],
  ['key', 'create'],
  ['key', 'list'],
  ['key', 'revoke', '<id>'],
  ['webhook', 'create'],
  ['webhook', 'list'],
  ['webhook', 'update', '<id>'],
  ['webhook', 'delete', '<id>'],
  ['webhook', 'disable', '<id>'],
  ['webhook', 'enable', '<id>'],
  ['webhook', 'send-missed', '<id>'],
  ['webhook', 'test', '<id>'],
  ['webhook', 'rotate', '<id>'],
  ['deliveries', 'list'],
  ['deliveries', 'undelivered'],
  ['deliveries', 'retry', '<id>'],
  ['deliveries', 'retry-failed'],
  ['deliveries', 'cancel', '<id>'],
  ['deliveries', 'attempts', '<id>'],
  ['deliveries', 'pause'],
  ['deliveries', 'unpause'],
  ['bulk', 'list'],
  ['bulk', 'show', '<id>'],
  ['bulk', 'pause', '<id>'],
  ['bulk', 'resume', '<id>'],
  ['bulk', 'cancel', '<id>'],
  ['secret-key', 'rotate'],
  ['secret-key', 'reset'],
  ['mock'],
  ['listen'],
  ['check-receiver', '<url>'],
]

const isArgument = (word: string): boolean => /^[<[]/.test(word)

/** The commands in a help text. */
function listedCommands(help: string): string[] {
  const [, list = ''] = help.split('\nCommands:\n')
  const names = [...list.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name = '']) => name)
  return names.filter((name) => name !== 'help')
}

describe('help', () => {
  it.each(COMMANDS.map((command) => ({ command, name: command.join(' ') })))(
    'of muster $name shows its arguments, --json and an example',
    async ({ command }) => {
      await using muster = await newMuster()
      const words = command.filter((word) => !isArgument(word))
      const { status, stdout, stderr } = await muster.run([...words, '--help'])
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(stdout).toContain(`Usage: muster ${words.join(' ')} [options]`)
      for (const argument of command) expect(stdout).toContain(argument)
      expect(stdout).toContain('--json')
      expect(stdout).toMatch(new RegExp(`Examples:\n +\\$ (\\w+=\\S+ )*muster ${words.join(' ')}`))
      expect(await readdir(muster.dataDir)).toEqual([])
    },
  )

  it.each(['--help', '-h'])('of muster generate explains --resource after %s', async (flag) => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['generate', '--resource', flag])
    expect(status).toBe(0)
    expect(stdout).toContain('--resource derives columns from the schema of the record.')
  })

  it.each([
    ['help key create', 'Usage: muster key create [options]'],
    ['help key', 'Usage: muster key [options] [command]'],
    ['help serve', 'Usage: muster serve [options]'],
  ])('muster %s shows %s', async (args, usage) => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(args.split(' '))
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining(usage) })
  })

  it('lists the commands, which are all in these tests', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['--help'])
    expect(status).toBe(0)
    const listed: string[] = []
    for (const name of listedCommands(stdout)) {
      const group = listedCommands((await muster.run([name, '--help'])).stdout)
      listed.push(...(group.length === 0 ? [name] : group.map((word) => `${name} ${word}`)))
    }
    const tested = COMMANDS.map((command) => command.filter((word) => !isArgument(word)).join(' '))
    expect(listed.sort()).toEqual(tested.sort())
  })
})

it('--version prints the version of the package', async () => {
  await using muster = await newMuster()
  expect(await muster.run(['--version'])).toEqual({
    status: 0,
    stdout: `${packageJson.version}\n`,
    stderr: '',
  })
})

describe('wrong usage', () => {
  it.each<[args: string[], message: RegExp]>([
    [[], /Usage: muster/],
    [['key'], /Usage: muster key/],
    [['bogus'], /unknown command 'bogus'/],
    [['key', 'lst'], /Did you mean list\?/],
    [['migrate', '--bogus'], /unknown option '--bogus'/],
    [['migrate', 'now'], /too many arguments/],
    [['backup'], /missing required argument 'path'/],
    [['key', 'list'], /required option '--email <email>' not specified/],
    [
      ['account', 'create', '--email', 'ann@example.com'],
      /required options '--name <name>', '--password <password>' not specified/,
    ],
    [
      ['key', 'create', '--email', 'a@b', '--name', 'A', '--access', 'all'],
      /option '--access <level>' argument 'all' is invalid.*full_access, read_only/,
    ],
    [
      ['user', 'create', '--grant', 'api_keys,money'],
      /option '--grant <list>'.*"money" is not one of api_keys, webhooks/,
    ],
    [['deliveries', 'list', '--webhook', 'x', '--state', 'lost'], /option '--state <state>'/],
    [['deliveries', 'list', '--webhook', 'x', '--limit', '0'], /option '--limit <n>'/],
    [['help', 'bogus', 'create'], /unknown command 'bogus'/],
    [
      ['webhook', 'send-missed', 'x', '--since', 'yesterday'],
      /option '--since <time>'.*2026-11-21/,
    ],
    [
      ['webhook', 'send-missed', 'x', '--since', '2026-02-30'],
      /option '--since <time>' argument '2026-02-30' is invalid/,
    ],
    [['webhook', 'send-missed', 'x', '--rate', '501'], /option '--rate <n>'.*from 1 to 500/],
    [
      ['webhook', 'send-missed', 'x', '--since', '2026-11-21', '--until', '2026-11-21'],
      /'--until <time>' must be later/,
    ],
    [
      ['deliveries', 'retry-failed', '--since', '2026-11-21'],
      /'--webhook <id>' and '--account <account>'/,
    ],
    [
      ['deliveries', 'retry-failed', '--since', '2026-11-21', '--webhook', 'x', '--account', 'x'],
      /cannot be used with/,
    ],
    [['deliveries', 'retry-failed', '--webhook', 'x'], /required option '--since <time>'/],
    [
      [
        'deliveries',
        'retry-failed',
        '--webhook',
        'x',
        '--since',
        '2026-11-21',
        '--type',
        'cat.fed',
      ],
      /"cat.fed" is not one of/,
    ],
    [['listen', '--port', '65536'], /option '--port <port>'/],
    [['listen', '--secret', 'abc'], /option '--secret <secret>'/],
    [['listen', '--forward', '8080'], /option '--forward <url>'.*http or https URL/],
    [['mock', '--port', 'http'], /option '--port <port>'.*whole number/],
    [['mock', 'now'], /too many arguments/],
    [['diff', 'main', '--release'], /option '--release'.*leave the base out/],
    [['docs'], /required option '--out <dir>'/],
    [['contract', '--restricted-key', 'mst_x'], /'--restricted-key <key>' needs option '--url/],
    [
      ['contract', '--url', 'http://127.0.0.1:1', '--key', '-', '--restricted-key', '-'],
      /standard input is empty: only one option/,
    ],
    [['check-receiver', 'http://127.0.0.1:1/'], /required option '--secret <secret>'/],
    [
      ['check-receiver', 'http://127.0.0.1:1/', '--secret', 'abc'],
      /option '--secret <secret>'.*whsec_/,
    ],
    [
      ['check-receiver', 'http://127.0.0.1:1/', '--secret', 'whsec_YWJj', '--next-secret', 'abc'],
      /option '--next-secret <secret>'.*whsec_/,
    ],
    [['listen', '--secret', '-'], /standard input is empty/],
    [
      ['check-receiver', 'ftp://example.com', '--secret', 'whsec_YWJj'],
      /'ftp:\/\/example\.com' is invalid for argument 'url'\. Use an http or https URL/,
    ],
  ])('muster %j: exits with 2 and names the mistake', async (args, message) => {
    await using muster = await newMuster()
    expect(await muster.run(args)).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    })
  })

  it('refuses two values from standard input, instead of an empty second one', async () => {
    await using muster = await newMuster()
    const args = ['--url', 'http://127.0.0.1:1', '--key', '-', '--webhook-secret', '-']
    const { status, stderr } = await muster.run(['contract', ...args, '--receiver-port', '8089'], {
      input: 'whsec_YWJj\n',
    })
    expect([status, stderr]).toEqual([2, expect.stringMatching(/standard input is empty/)])
  })
})

describe('settings', () => {
  it('names each invalid value', async () => {
    await using muster = await newMuster()
    const { status, stdout, stderr } = await muster.run(['migrate', '--json'], {
      environment: { PORT: 'http', ROLE: 'boss' },
    })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^PORT .*\nROLE .*\n$/)
  })

  it('refuses to run in production without checks of certificates', async () => {
    await using muster = await newMuster()
    const environment = { NODE_ENV: 'production', NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const { status, stderr } = await muster.run(['key', 'list', '--email', 'a'], { environment })
    expect(status).toBe(1)
    expect(stderr).toContain('NODE_TLS_REJECT_UNAUTHORIZED 0 would send webhooks to anyone')
  })

  it('lets only the owner read the files in an existing data directory', async () => {
    await using muster = await newMuster()
    await chmod(muster.dataDir, 0o755)
    await muster.run(['migrate'])
    const files = await readdir(muster.dataDir)
    expect(files).toContain('muster.sqlite')
    for (const file of files)
      expect((await stat(join(muster.dataDir, file))).mode & 0o077, file).toBe(0)
  })

  it.runIf(process.getuid?.() === 0)(
    'root gives the files that it creates to the owner of the data directory',
    async () => {
      await using muster = await newMuster()
      await chown(muster.dataDir, NOBODY, NOBODY)
      await newAccount(muster)
      await muster.run(['secret-key', 'rotate'])
      await using backups = await newMuster()
      await muster.run(['backup', '--keep', '1', backups.dataDir])
      const files = await readdir(muster.dataDir)
      expect(files.sort()).toEqual([
        'last-backup.json',
        'muster.sqlite',
        'secret.key',
        'secret.key.previous',
        'setup.lock',
      ])
      for (const file of files) {
        const { uid, gid } = await stat(join(muster.dataDir, file))
        expect([uid, gid], file).toEqual([NOBODY, NOBODY])
      }
      // A command that is killed leaves the files of the WAL.
      const db = openDatabase({ dataDir: muster.dataDir })
      await db.read('accounts').first('id')
      expect((await stat(join(muster.dataDir, 'muster.sqlite-wal'))).uid).toBe(NOBODY)
      await db.close()
    },
  )

  it('reports an unreachable database in one message', async () => {
    await using muster = await newMuster()
    const environment = { DATABASE_URL: 'postgres://127.0.0.1:1/muster', SECRET_KEY }
    const { status, stderr } = await muster.run(['webhook', 'list'], { environment })
    expect(status).toBe(1)
    expect(stderr).toBe(
      'The database cannot be reached or is overloaded: connect ECONNREFUSED 127.0.0.1:1. ' +
        'Check DATABASE_URL, the server and the network.\n',
    )
  })
})

describe('--config', () => {
  const newFile = async (muster: Muster, text: string): Promise<string> => {
    const file = join(muster.dataDir, 'settings.env')
    await writeFile(file, text)
    return file
  }

  it('reads settings from a file, before or after the command', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    const text = [
      '# A comment',
      '; another',
      '',
      `DATA_DIR=${muster.dataDir}\r`,
      'BASE_URL="https://example.com/#a"',
      "NODE_ENV='production'",
      'SIGN_UP=',
    ].join('\n')
    const file = await newFile(muster, text)
    const options = { environment: { DATA_DIR: '' } }
    for (const args of [
      ['--config', file, 'account', 'list', '--json'],
      [`--config=${file}`, 'account', 'list', '--json'],
      ['account', 'list', '--json', '--config', file],
    ]) {
      const { status, stdout } = await muster.run(args, options)
      expect([status, JSON.parse(stdout)]).toEqual([
        0,
        [expect.objectContaining({ id: account_id })],
      ])
    }
    const { findings } = await muster.json(['--config', file, 'doctor'], options)
    expect(findings[0].text).toContain('BASE_URL https://example.com/#a.')
    expect(findings[1].text).toContain('METRICS_PORT is not set')
  })

  it('sets the variables that Node.js reads at its start', async () => {
    await using muster = await newMuster()
    const file = await newFile(muster, 'NODE_OPTIONS=--unknown-option')
    const { stderr } = await muster.run(['--config', file, 'lint', '--help'])
    expect(stderr).toContain('--unknown-option is not allowed in NODE_OPTIONS')
  })

  it('starts the service with the settings of the file', async () => {
    await using muster = await newMuster()
    const file = await newFile(muster, `DATA_DIR=${muster.dataDir}\nPORT=0\nLOG_LEVEL=silent`)
    const options = { environment: { DATA_DIR: '' } }
    const serving = muster.start(['--config', file, 'serve', '--json'], options)
    expect(await waitForDocument(serving)).toHaveProperty('first_account.email')
    serving.process.kill('SIGINT')
    expect((await serving.ended).status).toBe(0)
  })

  it('a variable that is set overrides the file', async () => {
    await using muster = await newMuster()
    await using other = await newMuster()
    await newAccount(muster)
    const file = await newFile(muster, `DATA_DIR=${other.dataDir}`)
    expect(await muster.json(['--config', file, 'account', 'list'])).toHaveLength(1)
  })

  it.each([
    ['no assignment', 'DATA_DIR'],
    ['a name that is none', 'export DATA_DIR=/x'],
    ['# in a value without quotes', 'SECRET_KEY=secret#key'],
    ['a quote without its end', 'SECRET_KEY="secret'],
    ['text after the quotes', 'SECRET_KEY="secret" # mine'],
  ])('refuses a line with %s, and does not show it', async (_, line) => {
    await using muster = await newMuster()
    const file = await newFile(muster, `PORT=0\n${line}\n`)
    const { status, stdout, stderr } = await muster.run(['--config', file, 'account', 'list'])
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^Line 2 of \S+settings\.env is not a setting\. Write NAME=value/)
    expect(stderr).not.toMatch(/secret#|"secret|\/x/)
  })

  it('refuses a missing file, and an option without a file', async () => {
    await using muster = await newMuster()
    const file = join(muster.dataDir, 'missing.env')
    expect(await muster.run(['--config', file, 'doctor'])).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^The file of --config cannot be read: ENOENT: .*missing\.env/),
    })
    expect(await muster.run(['doctor', '--config'])).toMatchObject({ status: 2, stdout: '' })
    const second = await newFile(muster, 'PORT=0')
    const twice = await muster.run(['--config', second, '--config', second, 'doctor'])
    expect(twice).toEqual({ status: 1, stdout: '', stderr: 'Use --config only once.\n' })
    expect(await muster.run(['doctor', '--config='])).toMatchObject({ status: 2, stdout: '' })
    expect(await readdir(muster.dataDir)).toEqual(['settings.env'])
  })
})

describe('bin/muster.js', () => {
  /** An older Node on this machine, if there is one. */
  const olderNode = otherNodes().find((node) => majorVersion(node) < 24)

  it.runIf(olderNode)(
    'under an older Node, runs the installed one with the same arguments, input, output and status',
    async () => {
      await using muster = await newMuster()
      const options = { node: olderNode, input: 'correct horse' }
      const args = ['account', 'create', ...accountOptions('A B').slice(0, -1), '-']
      expect(await muster.json(args, options)).toHaveProperty('account_id')
      expect(await muster.run(args, options)).toMatchObject({ status: 1, stdout: '' })
      expect(await muster.run(['bogus'], options)).toMatchObject({ status: 2, stdout: '' })
    },
  )

  it.runIf(olderNode)('under an older Node, forwards SIGTERM', async () => {
    await using muster = await newMuster()
    const listener = muster.start(['listen', '--port', '0'], { node: olderNode })
    await waitForOutput(listener, /Listening on/)
    listener.process.kill('SIGTERM')
    expect(await listener.ended).toMatchObject({ status: 0 })
  })

  it.runIf(olderNode)(
    'under an older Node, stops the installed one when it is killed',
    async () => {
      await using muster = await newMuster()
      const listener = muster.start(['listen', '--port', '0'], { node: olderNode })
      const [, url = ''] = await waitForOutput(listener, /Listening on (\S+)/)
      listener.process.kill('SIGKILL')
      // Resolves when the pipes close, so after the last process that uses them has exited.
      expect((await listener.ended).status).toBeNull()
      await expect(fetch(url, { method: 'POST' })).rejects.toThrow()
    },
  )

  it('prints the required version of Node if none is installed', async () => {
    const pretendOlderNode = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.1.0'})`
    await using muster = await newMuster()
    const { status, stderr } = await muster.run([], {
      node: process.execPath,
      environment: { NODE_OPTIONS: `--import="${pretendOlderNode}"` },
    })
    expect(status).toBe(1)
    expect(stderr).toContain('Muster needs Node.js 24.7 or newer. This is Node.js 20.1.0.')
    expect(stderr).toContain('npm ci')
  })

  it('is executable', () => {
    expect(execFileSync(BIN, ['--version'], { encoding: 'utf8' })).toBe(`${packageJson.version}\n`)
  })
})

function majorVersion(node: string): number {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' })
  return Number(/^v(\d+)/.exec(version)?.[1])
}
