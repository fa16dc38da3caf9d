import { readdir } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { newMuster } from './muster.ts'

/** The words and arguments of every command. */
const COMMANDS = [
  ...['serve', 'dev', 'migrate', 'doctor', 'backup <path>', 'copy'],
  ...['generate', 'lint [folder]', 'docs', 'diff [base]', 'contract'],
  ...['account create', 'account list', 'account suspend <account>', 'account resume <account>'],
  ...['account quota <account>', 'account delete <account>'],
  ...['user create', 'user list', 'user update', 'user link', 'user quota', 'user deactivate'],
  ...['key create', 'key list', 'key revoke <id>'],
  ...['webhook create', 'webhook list', 'webhook update <id>', 'webhook delete <id>'],
  ...['webhook disable <id>', 'webhook enable <id>', 'webhook send-missed <id>'],
  ...['webhook test <id>', 'webhook rotate <id>'],
  ...['deliveries list', 'deliveries undelivered', 'deliveries retry <id>'],
  ...['deliveries retry-failed', 'deliveries retry-waiting'],
  ...['deliveries cancel <id>', 'deliveries attempts <id>'],
  ...['deliveries pause', 'deliveries unpause'],
  ...['bulk list', 'bulk show <id>', 'bulk pause <id>', 'bulk resume <id>', 'bulk cancel <id>'],
  ...['secret-key rotate', 'secret-key reset', 'mock', 'listen', 'check-receiver <url>'],
  'completion <shell>',
]

/** The command without its arguments. */
const nameOf = (command: string): string => command.replace(/ [<[].*/, '')

/** The commands in a help text. */
function listedCommands(help: string): string[] {
  const [, list = ''] = help.split('\nCommands:\n')
  const names = [...list.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name = '']) => name)
  return names.filter((name) => name !== 'help')
}

describe('help', () => {
  it.each(COMMANDS)('of muster %s shows its arguments, --json and an example', async (command) => {
    await using muster = await newMuster()
    const name = nameOf(command)
    const { status, stdout, stderr } = await muster.run([...name.split(' '), '--help'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(`Usage: muster ${name} [options]`)
    for (const word of command.split(' ')) expect(stdout).toContain(word)
    expect(stdout).toContain('--json')
    expect(stdout).toMatch(new RegExp(`Examples:\n +\\$ (\\w+=\\S+ )*muster ${name}`))
    expect(await readdir(muster.dataDir)).toEqual([])
  })

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
    expect(listed.sort()).toEqual(COMMANDS.map(nameOf).sort())
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
