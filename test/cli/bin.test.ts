import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { accountOptions, BIN, newMuster, waitForOutput } from './muster.ts'
import { otherNodes } from './nodes.ts'

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
