import { describe, expect, it, test } from 'vitest'
import { newMuster, PASSWORD } from './muster.ts'

describe('account list, suspend and resume', () => {
  it('list the accounts with their states, and do nothing twice', async () => {
    await using muster = await newMuster()
    const json = (...args: string[]) => muster.json(args)
    const run = (...args: string[]) => muster.run(args)
    expect((await run('account', 'list')).stdout).toContain('No accounts yet.')
    const ids: string[] = []
    for (const [name, email] of [
      ['Acme', 'ann@example.com'],
      ['Bolt', 'bob@example.com'],
      ['Bolt', 'eve@example.com'],
    ] as const) {
      const args = ['--name', name, '--email', email, '--password', PASSWORD]
      ids.push((await json('account', 'create', ...args)).account_id)
    }
    const suspended = await json('account', 'suspend', 'Acme')
    expect(suspended).toMatchObject({ id: ids[0], name: 'Acme', owner_email: 'ann@example.com' })
    expect(suspended.suspended_at).toMatch(/^20.*Z$/)
    expect((await json('account', 'suspend', 'Acme')).suspended_at).toBe(suspended.suspended_at)
    expect(
      (await json('account', 'list')).map(
        ({ suspended_at: at }: { suspended_at: string | null }) => at,
      ),
    ).toEqual([suspended.suspended_at, null, null])
    const { stdout } = await run('account', 'list')
    expect(stdout.split('\n')[0]).toMatch(/^ID +NAME +OWNER +CREATED +STATE$/)
    expect(stdout).toMatch(/ Acme +ann@example\.com +\S+ +suspended \S+\n/)
    expect((await json('account', 'resume', 'Acme')).suspended_at).toBeNull()
    expect((await run('account', 'resume', 'Acme')).stdout).toBe(
      'The account Acme is not suspended.\n',
    )
    expect(await run('account', 'suspend', 'Bolt')).toEqual({
      status: 1,
      stdout: '',
      stderr: `2 accounts have the name Bolt. Use the ID of one of them: ${ids[1]}, ${ids[2]}\n`,
    })
    expect((await run('account', 'suspend', 'Nobody')).stderr).toBe('There is no account Nobody\n')
  })
})

test('the option --account takes the ID or the name of an account', async () => {
  await using muster = await newMuster()
  const owner = ['--name', 'Acme', '--email', 'ann@example.com', '--password', PASSWORD]
  const { account_id } = await muster.json(['account', 'create', ...owner])
  const member = ['--email', 'bob@example.com', '--role', 'member', '--password', PASSWORD]
  await muster.json(['user', 'create', '--account', 'Acme', ...member])
  for (const account of [account_id, 'Acme']) {
    expect(await muster.json(['user', 'list', '--account', account])).toHaveLength(2)
    for (const command of ['webhook list', 'bulk list', 'deliveries undelivered'])
      expect(await muster.json([...command.split(' '), '--account', account]), command).toEqual([])
  }
  expect(await muster.run(['webhook', 'list', '--account', 'Nobody'])).toMatchObject({
    status: 1,
    stderr: 'There is no account Nobody\n',
  })
})

describe('account quota', () => {
  it('shows the use, sets a quota and its default again, and refuses other values', async () => {
    await using muster = await newMuster()
    const args = ['--name', 'Acme', '--email', 'ann@example.com', '--password', PASSWORD]
    const { account_id } = await muster.json(['account', 'create', ...args])
    const quota = (...options: string[]) => muster.run(['account', 'quota', 'Acme', ...options])
    expect((await quota()).stdout).toMatch(
      new RegExp(
        [
          '^QUOTA +USED +LIMIT',
          'records +0 +1000000',
          'events_per_day +0 +1000000',
          'webhooks +0 +50',
          'users +1 +500',
          'keys_per_user +0 +100',
          'export_mib +0 +1024',
          'unfinished_exports +0 +3\n$',
        ].join('\n'),
      ),
    )
    expect((await quota('--records', '5', '--webhooks', '2')).stdout).toMatch(
      /records +0 +5\n.*\nwebhooks +0 +2\n/,
    )
    expect((await quota('--records', 'default')).stdout).toMatch(
      /records +0 +1000000\n.*\nwebhooks +0 +2\n/,
    )
    expect(await muster.json(['account', 'quota', 'Acme'])).toMatchObject({ account_id })
    await quota('--users', '1', '--keys-per-user', '0')
    const user = ['--email', 'bob@example.com', '--role', 'member', '--password', PASSWORD]
    expect(await muster.run(['user', 'create', '--account', account_id, ...user])).toMatchObject({
      status: 1,
      stderr: 'An account can have at most 1 user.\n',
    })
    const key = ['--email', 'ann@example.com', '--name', 'Second', '--access', 'read_only']
    expect(await muster.run(['key', 'create', ...key])).toMatchObject({
      status: 1,
      stderr: 'A user can have at most 0 API keys. Revoke one that you no longer need.\n',
    })
    expect(await quota('--records', '-1')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Use a whole number, or "default".'),
    })
  })
})
