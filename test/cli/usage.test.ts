import { chmod, chown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { NOBODY } from '../postgres.ts'
import { newAccount, newMuster, SECRET_KEY } from './muster.ts'

describe('wrong usage', () => {
  it.each<[args: string, message: RegExp]>([
    ['', /Usage: muster/],
    ['key', /Usage: muster key/],
    ['bogus', /unknown command 'bogus'/],
    ['key lst', /Did you mean list\?/],
    ['migrate --bogus', /unknown option '--bogus'/],
    ['migrate now', /too many arguments/],
    ['backup', /missing required argument 'path'/],
    ['key list', /required option '--email <email>' not specified/],
    [
      'account create --email ann@example.com',
      /required options '--name <name>', '--password <password>' not specified/,
    ],
    [
      'key create --email a@b --name A --access all',
      /option '--access <level>' argument 'all' is invalid.*full_access, read_only/,
    ],
    [
      'user create --grant api_keys,money',
      /option '--grant <list>'.*"money" is not one of api_keys, webhooks/,
    ],
    ['deliveries list --webhook x --state lost', /option '--state <state>'/],
    ['deliveries list --webhook x --limit 0', /option '--limit <n>'/],
    ['help bogus create', /unknown command 'bogus'/],
    ['webhook send-missed x --since yesterday', /option '--since <time>'.*2026-11-21/],
    [
      'webhook send-missed x --since 2026-02-30',
      /option '--since <time>' argument '2026-02-30' is invalid/,
    ],
    ['webhook send-missed x --rate 501', /option '--rate <n>'.*from 1 to 500/],
    [
      'webhook send-missed x --since 2026-11-21 --until 2026-11-21',
      /'--until <time>' must be later/,
    ],
    ['deliveries retry-failed --since 2026-11-21', /'--webhook <id>' and '--account <account>'/],
    ['deliveries retry-failed --since 2026-11-21 --webhook x --account x', /cannot be used with/],
    ['deliveries retry-waiting', /'--webhook <id>' and '--account <account>'/],
    ['deliveries retry-failed --webhook x', /required option '--since <time>'/],
    [
      'deliveries retry-failed --webhook x --since 2026-11-21 --type cat.fed',
      /"cat.fed" is not one of/,
    ],
    ['listen --port 65536', /option '--port <port>'/],
    ['listen --secret abc', /option '--secret <secret>'/],
    ['listen --forward 8080', /option '--forward <url>'.*http or https URL/],
    ['mock --port http', /option '--port <port>'.*whole number/],
    ['mock now', /too many arguments/],
    ['diff main --release', /option '--release'.*leave the base out/],
    ['docs', /required option '--out <dir>'/],
    ['contract --restricted-key mst_x', /'--restricted-key <key>' needs option '--url/],
    [
      'contract --url http://127.0.0.1:1 --key mst_x --finance-read-key mst_x',
      /'--finance-none-key <key>' and option '--finance-read-key <key>' must be used together/,
    ],
    [
      'contract --url http://127.0.0.1:1 --key - --restricted-key -',
      /standard input is empty: only one option/,
    ],
    ['check-receiver http://127.0.0.1:1/', /required option '--secret <secret>'/],
    ['check-receiver http://127.0.0.1:1/ --secret abc', /option '--secret <secret>'.*whsec_/],
    [
      'check-receiver http://127.0.0.1:1/ --secret whsec_YWJj --next-secret abc',
      /option '--next-secret <secret>'.*whsec_/,
    ],
    ['listen --secret -', /standard input is empty/],
    [
      'check-receiver ftp://example.com --secret whsec_YWJj',
      /'ftp:\/\/example\.com' is invalid for argument 'url'\. Use an http or https URL/,
    ],
  ])('muster %s: exits with 2 and names the mistake', async (args, message) => {
    await using muster = await newMuster()
    expect(await muster.run(args.split(' ').filter(Boolean))).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    })
  })

  it('refuses two values from standard input, instead of an empty second one', async () => {
    await using muster = await newMuster()
    const args = ['--url', 'http://127.0.0.1:1', '--key', '-', '--other-key', '-']
    const { status, stderr } = await muster.run(['contract', ...args], { input: 'mst_abc\n' })
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
