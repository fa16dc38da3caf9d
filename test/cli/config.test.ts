import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Muster, newAccount, newMuster, waitForDocument } from './muster.ts'

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
    ['a byte order mark', '\uFEFFDATA_DIR=/x'],
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
