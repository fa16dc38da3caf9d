import { execFile, spawnSync } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { startListener } from '../receiver.ts'
import { newMuster, waitForOutput } from './muster.ts'
import { SERVE_ENVIRONMENT, startServing } from './serving.ts'

/** Longer than any test. */
const LONG_DRAIN = { environment: { DRAIN_MS: '600000' } }
/** A SIGTERM within 250 ms of another one counts as the same: see cli/stop-signals.ts. */
const MORE_THAN_DUPLICATE_MS = 400
const canRunCurl = spawnSync('curl', ['--version']).status === 0

/** The status of a request with this key. */
const statusOf = async (url: string, token: string): Promise<number> => {
  const headers = { Authorization: `Bearer ${token}` }
  return (await fetch(`${url}/public/v1/participants`, { headers })).status
}

describe('serve', { timeout: 120_000 }, () => {
  it('creates an account at the first start only, and starts again after SIGKILL', async () => {
    await using muster = await newMuster()
    const first = await startServing(muster)
    const account = first.ready.first_account
    expect(account).toMatchObject({
      email: 'owner@muster.local',
      token: expect.stringMatching(/^mst_/),
    })
    const token = account?.token ?? ''
    expect(await statusOf(first.ready.url, token)).toBe(200)
    first.process.kill('SIGKILL')
    await first.ended

    const second = await startServing(muster)
    expect(second.ready.first_account).toBeNull()
    expect(await statusOf(second.ready.url, token)).toBe(200)
  })

  it('accepts a key that another process creates, and refuses it when revoked, also after SIGKILL', async () => {
    await using muster = await newMuster()
    const { process, ended, ready } = await startServing(muster)
    const options = ['--email', 'owner@muster.local', '--name', 'B', '--access', 'read_only']
    const { id, token } = await muster.json(['key', 'create', ...options])
    expect(await statusOf(ready.url, token)).toBe(200)
    await muster.json(['key', 'revoke', id])
    expect(await statusOf(ready.url, token)).toBe(401)
    process.kill('SIGKILL')
    await ended
    const again = await startServing(muster)
    expect(await statusOf(again.ready.url, token)).toBe(401)
  })

  it('refuses to start beside another server with the same DATA_DIR', async () => {
    await using muster = await newMuster()
    await startServing(muster)
    expect(await muster.run(['serve'], { environment: SERVE_ENVIRONMENT })).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining(
        `Another muster serve is already running on DATA_DIR ${muster.dataDir}.`,
      ),
    })
  })

  it('stops with status 0 after Ctrl-C under npm, and prints nothing more with --json', async () => {
    await using muster = await newMuster()
    const { process, ended, ready } = await startServing(muster)
    // The terminal sends SIGINT to npm, too, and npm forwards a signal. The two count as one.
    process.kill('SIGINT')
    process.kill('SIGTERM')
    const { status, stdout } = await ended
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toEqual(ready)
  })

  it.runIf(canRunCurl)(
    'prints commands for a shell, which set MUSTER_URL, MUSTER_API_KEY and ACCOUNT and call the API',
    async () => {
      await using muster = await newMuster()
      const started = muster.start(['serve'], { environment: SERVE_ENVIRONMENT })
      const [text] = await waitForOutput(started, /^.*Your first call.*\n$/s)
      const commands = text.match(/^ {2}(export|curl) .*$/gm) ?? []
      const script = [...commands, 'echo " $ACCOUNT"'].join('\n')
      const { stdout } = await promisify(execFile)('sh', ['-c', script])
      const [, body = '', account] = /^(.*) (.*)\n$/.exec(stdout) ?? []
      expect([commands.length, JSON.parse(body).account]).toEqual([
        4,
        { id: account, name: 'My account' },
      ])
    },
  )

  it('serves requests while it drains after SIGTERM, until a second SIGTERM', async () => {
    await using muster = await newMuster()
    const { process, ended, ready } = await startServing(muster, LONG_DRAIN)
    // A service manager may signal every process, and npm forwards the signal. They count as one.
    process.kill('SIGTERM')
    process.kill('SIGTERM')
    await until('the node drains', async () => (await fetch(`${ready.url}/readyz`)).status === 503)
    await wait(MORE_THAN_DUPLICATE_MS)
    expect(await statusOf(ready.url, ready.first_account?.token ?? '')).toBe(200)
    process.kill('SIGTERM')
    expect((await ended).status).toBe(0)
  })

  it('stops without a drain after SIGINT', async () => {
    await using muster = await newMuster()
    const { process, ended } = await startServing(muster, LONG_DRAIN)
    process.kill('SIGINT')
    expect((await ended).status).toBe(0)
  })

  it('prints the first account even if the port is in use', async () => {
    await using muster = await newMuster()
    await using other = await startListener()
    const { port } = other
    const { status, stdout, stderr } = await muster.run(['serve'], {
      environment: { ...SERVE_ENVIRONMENT, PORT: String(port) },
    })
    expect(status).toBe(1)
    expect(stdout).toMatch(
      /Email +owner@muster\.local\n +Password +(\w{5}-){3}\w{5}\n.* export ACCOUNT=[\w-]{36}\n +export MUSTER_API_KEY=mst_\w{43}_\w{6}\n/s,
    )
    expect(stderr).toBe(`Port ${port} of 127.0.0.1 is already in use. Set PORT to another port.\n`)
  })
})
