import { execFile, spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { newMuster } from './muster.ts'
import { SERVE_ENVIRONMENT, startServing } from './serving.ts'

const canRunCurl = spawnSync('curl', ['--version']).status === 0

const list = (url: string, token: string) =>
  fetch(`${url}/public/v1/participants`, { headers: { Authorization: `Bearer ${token}` } })

// Each start brings up the whole service, several times.
describe('serve', { timeout: 120_000 }, () => {
  it('creates the first account once, refuses a second server, and restarts after SIGKILL', async () => {
    await using muster = await newMuster()
    const first = await startServing(muster)
    const { url, first_account: account } = first.ready
    expect(account).toMatchObject({
      email: 'owner@muster.local',
      token: expect.stringMatching(/^mst_/),
    })
    const token = account?.token ?? ''
    expect((await list(url, token)).status).toBe(200)

    const { id, token: other } = await muster.json([
      'key',
      'create',
      '--email',
      'owner@muster.local',
      '--name',
      'B',
      '--access',
      'read_only',
    ])
    expect((await list(url, other)).status).toBe(200)
    await muster.json(['key', 'revoke', id])
    expect((await list(url, other)).status).toBe(401)

    const second = await muster.run(['serve'], { environment: SERVE_ENVIRONMENT })
    expect(second).toMatchObject({ status: 1, stdout: '' })
    expect(second.stderr).toContain(
      `Another muster serve is already running on DATA_DIR ${muster.dataDir}.`,
    )

    first.process.kill('SIGKILL')
    await first.ended
    const again = await startServing(muster)
    expect(again.ready.first_account).toBeNull()
    expect((await list(again.ready.url, token)).status).toBe(200)
    expect((await list(again.ready.url, other)).status).toBe(401)

    // Ctrl-C under npm sends two signals. They count as one.
    again.process.kill('SIGINT')
    again.process.kill('SIGTERM')
    const { status, stdout } = await again.ended
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toEqual(again.ready)
  })

  it.runIf(canRunCurl)(
    'prints lines for a shell: they set KEY and ACCOUNT, and make a call',
    async () => {
      await using muster = await newMuster()
      const { output } = muster.start(['serve'], { environment: SERVE_ENVIRONMENT })
      const text = await until(
        'the first call is printed',
        () => /Your first call.*\n$/s.test(output.stdout) && output.stdout,
        60_000,
      )
      const commands = text.match(/^ {2}(export|curl) .*$/gm) ?? []
      const script = [...commands, 'echo " $ACCOUNT"'].join('\n')
      const { stdout } = await promisify(execFile)('sh', ['-c', script])
      const [, body = '', account] = /^(.*) (.*)\n$/.exec(stdout) ?? []
      expect([commands.length, JSON.parse(body).account]).toEqual([
        3,
        { id: account, name: 'My account' },
      ])
    },
  )

  it('SIGTERM: drains; a second SIGTERM or SIGINT skips the drain', async () => {
    await using muster = await newMuster()
    const options = { environment: { DRAIN_MS: '600000' } }
    const first = await startServing(muster, options)
    const { url, first_account: account } = first.ready
    // A service manager may signal every process, and npm forwards the signal.
    first.process.kill('SIGTERM')
    first.process.kill('SIGTERM')
    await until('the node drains', async () => (await fetch(`${url}/readyz`)).status === 503)
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect((await list(url, account?.token ?? '')).status).toBe(200)
    first.process.kill('SIGTERM')
    expect((await first.ended).status).toBe(0)

    const second = await startServing(muster, options)
    second.process.kill('SIGINT')
    expect((await second.ended).status).toBe(0)
  })

  it('prints the first account even if the port is in use', async () => {
    await using muster = await newMuster()
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    const { status, stdout, stderr } = await muster.run(['serve'], {
      environment: { ...SERVE_ENVIRONMENT, PORT: String(port) },
    })
    await new Promise((resolve) => taken.close(resolve))
    expect(status).toBe(1)
    expect(stdout).toMatch(
      /Email +owner@muster\.local\n +Password +(\w{5}-){3}\w{5}\n.* export ACCOUNT=[\w-]{36}\n +export KEY=mst_\w{43}_\w{6}\n/s,
    )
    expect(stderr).toBe(`Port ${port} of 127.0.0.1 is already in use. Set PORT to another port.\n`)
  })
})
