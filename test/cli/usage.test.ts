import { execFileSync } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { chmod, readdir, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { BIN, newMuster } from './muster.ts'

const COMMANDS = [
  ['serve'],
  ['dev'],
  ['migrate'],
  ['doctor'],
  ['backup', '<file>'],
  ['generate'],
  ['lint', '[folder]'],
  ['docs'],
  ['diff', '[base]'],
  ['contract'],
  ['account', 'create'],
  ['account', 'list'],
  ['account', 'suspend', '<account>'],
  ['account', 'resume', '<account>'],
  ['account', 'delete', '<account>'],
  ['user', 'create'],
  ['user', 'list'],
  ['user', 'update'],
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
  ['bulk', 'list'],
  ['bulk', 'show', '<id>'],
  ['bulk', 'pause', '<id>'],
  ['bulk', 'resume', '<id>'],
  ['bulk', 'cancel', '<id>'],
  ['mock'],
  ['listen'],
  ['check-receiver', '<url>'],
]

describe('help', () => {
  it('of every command shows its arguments, --json and an example', async () => {
    await using muster = await newMuster()
    for (const command of COMMANDS) {
      const words = command.filter((word) => !/^[<[]/.test(word))
      const { status, stdout, stderr } = await muster.run([...words, '--help'])
      expect({ status, stderr }, words.join(' ')).toEqual({ status: 0, stderr: '' })
      expect(stdout).toContain(`Usage: muster ${words.join(' ')} [options]`)
      for (const argument of command) expect(stdout).toContain(argument)
      expect(stdout).toContain('--json')
      expect(stdout).toMatch(new RegExp(`Examples:\n +\\$ (\\w+=\\S+ )*muster ${words.join(' ')}`))
    }
    expect(await readdir(muster.dataDir)).toEqual([])
  })

  it('of muster lists the commands', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['--help'])
    expect(status).toBe(0)
    for (const [name = ''] of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'))
    expect(await muster.run(['--version'])).toEqual({
      status: 0,
      stdout: `${packageJson.version}\n`,
      stderr: '',
    })
  })
})

describe('wrong usage', () => {
  it('exits with 2, names the mistake and prints nothing on standard output', async () => {
    await using muster = await newMuster()
    for (const [args, message] of [
      [[], /Usage: muster/],
      [['key'], /Usage: muster key/],
      [['bogus'], /unknown command 'bogus'/],
      [['key', 'lst'], /Did you mean list\?/],
      [['migrate', '--bogus'], /unknown option '--bogus'/],
      [['migrate', 'now'], /too many arguments/],
      [['backup'], /missing required argument 'file'/],
      [['key', 'list'], /required option '--email <email>'/],
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
      [
        [
          'webhook',
          'create',
          '--account',
          'x',
          '--url',
          'https://example.com',
          '--events',
          'cat.fed',
        ],
        /option '--events <list>': "cat.fed"/,
      ],
      [
        [
          'webhook',
          'create',
          '--account',
          'x',
          '--url',
          'https://example.com',
          '--events',
          'webhook.test',
        ],
        /"webhook.test"/,
      ],
      [
        ['webhook', 'send-missed', 'x', '--since', 'yesterday'],
        /option '--since <time>'.*2026-11-21/,
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
        /only one of the keys/,
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
      [['listen', '--secret', '-'], /option '--secret <secret>'.*whsec_/],
      [['check-receiver', 'ftp://example.com', '--secret', 'whsec_YWJj'], /argument 'url'|ftp/],
    ] as const) {
      const { status, stdout, stderr } = await muster.run([...args])
      expect({ status, stdout }, args.join(' ')).toEqual({ status: 2, stdout: '' })
      expect(stderr).toMatch(message)
    }
  })
})

describe('settings', () => {
  it('invalid values are refused by name', async () => {
    await using muster = await newMuster()
    const { status, stdout, stderr } = await muster.run(['migrate', '--json'], {
      environment: { PORT: 'http', ROLE: 'boss' },
    })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^PORT .*\nROLE .*\n$/)
  })

  it('without checks of certificates, production is refused', async () => {
    await using muster = await newMuster()
    const environment = { NODE_ENV: 'production', NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const { status, stderr } = await muster.run(['key', 'list', '--email', 'a'], { environment })
    expect(status).toBe(1)
    expect(stderr).toContain('NODE_TLS_REJECT_UNAUTHORIZED 0 would send webhooks to anyone')
  })

  it('the files of a data directory that existed before are for its owner only', async () => {
    await using muster = await newMuster()
    await chmod(muster.dataDir, 0o755)
    await muster.run(['migrate'])
    const files = await readdir(muster.dataDir)
    expect(files).toContain('muster.sqlite')
    for (const file of files)
      expect((await stat(join(muster.dataDir, file))).mode & 0o077, file).toBe(0)
  })

  it('an unreachable database is reported in one sentence', async () => {
    await using muster = await newMuster()
    const environment = {
      DATABASE_URL: 'postgres://127.0.0.1:1/muster',
      SECRET_KEY: 'a secret key that only tests would ever use',
    }
    const { status, stderr } = await muster.run(['webhook', 'list'], { environment })
    expect(status).toBe(1)
    expect(stderr).toBe(
      'The database cannot be reached or is overloaded: connect ECONNREFUSED 127.0.0.1:1. ' +
        'Check DATABASE_URL, the server and the network.\n',
    )
  })
})

describe('bin/muster.js', () => {
  const older = olderNode()

  // Runs only on machines that also have an older Node.
  it.runIf(older)(
    'runs the installed Node with the same arguments, input, output and status',
    async () => {
      await using muster = await newMuster()
      const args = [
        'account',
        'create',
        '--name',
        'A B',
        '--email',
        'ann@example.com',
        '--password',
        '-',
      ]
      expect(await muster.json(args, { node: older, input: 'correct horse' })).toHaveProperty(
        'account_id',
      )
      expect(await muster.run(args, { node: older, input: 'correct horse' })).toMatchObject({
        status: 1,
        stdout: '',
      })
      expect(await muster.run(['bogus'], { node: older })).toMatchObject({ status: 2, stdout: '' })
    },
  )

  it.runIf(older)('forwards signals, and stops when its parent is killed', async () => {
    await using muster = await newMuster()
    const listening = async (signal: NodeJS.Signals) => {
      const listener = muster.start(['listen', '--port', '0'], { node: older })
      const url = await new Promise<string>((resolve) => {
        listener.process.stdout?.on('data', () => {
          const [, found] = listener.output.stdout.match(/Listening on (\S+)/) ?? []
          if (found) resolve(found)
        })
      })
      listener.process.kill(signal)
      const { status } = await listener.ended
      return { url, status }
    }
    expect(await listening('SIGTERM')).toMatchObject({ status: 0 })
    // The pipes close when the last process that uses them has exited, also the inner one.
    const killed = await listening('SIGKILL')
    expect(killed.status).toBeNull()
    await expect(fetch(killed.url, { method: 'POST' })).rejects.toThrow()
  })

  it('without a suitable Node: prints the required version', async () => {
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

function olderNode(): string | undefined {
  const candidates = (process.env.PATH ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'node'))
  return candidates.find((node) => {
    if (!existsSync(node) || realpathSync(node) === realpathSync(process.execPath)) return false
    const [, major] = execFileSync(node, ['--version'], { encoding: 'utf8' }).match(/^v(\d+)/) ?? []
    return Number(major) < 24
  })
}
