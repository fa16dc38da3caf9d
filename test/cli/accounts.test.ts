import { describe, expect, it } from 'vitest'
import { newAccount, newMuster, PASSWORD } from './muster.ts'

/** Options of `muster user create`. */
const NEW_MEMBER = ['--email', 'bob@example.com', '--role', 'member', '--password', PASSWORD]

describe('account list', () => {
  it('says that there are no accounts yet', async () => {
    await using muster = await newMuster()
    await muster.run(['migrate'])
    expect((await muster.run(['account', 'list'])).stdout).toContain('No accounts yet.')
  })

  it('lists the accounts with their states', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    await newAccount(muster, 'Bolt', 'bob@example.com')
    const { suspended_at } = await muster.json(['account', 'suspend', 'Acme'])
    expect(await muster.json(['account', 'list'])).toMatchObject([
      { name: 'Acme', suspended_at },
      { name: 'Bolt', suspended_at: null },
    ])
    const { stdout } = await muster.run(['account', 'list'])
    expect(stdout.split('\n')[0]).toMatch(/^ID +NAME +OWNER +CREATED +STATE$/)
    expect(stdout).toMatch(/ Acme +ann@example\.com +\S+ +suspended \S+\n/)
  })
})

describe('account suspend and resume', () => {
  it('change the state, and change nothing the second time', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    const suspended = await muster.json(['account', 'suspend', 'Acme'])
    expect(suspended).toMatchObject({
      id: account_id,
      name: 'Acme',
      owner_email: 'ann@example.com',
      suspended_at: expect.stringMatching(/^20.*Z$/),
    })
    expect((await muster.json(['account', 'suspend', 'Acme'])).suspended_at).toBe(
      suspended.suspended_at,
    )
    expect((await muster.json(['account', 'resume', 'Acme'])).suspended_at).toBeNull()
    expect((await muster.run(['account', 'resume', 'Acme'])).stdout).toBe(
      'The account Acme is not suspended.\n',
    )
  })

  it('refuse a name that no account or several accounts have', async () => {
    await using muster = await newMuster()
    const first = await newAccount(muster, 'Bolt', 'bob@example.com')
    const second = await newAccount(muster, 'Bolt', 'eve@example.com')
    expect(await muster.run(['account', 'suspend', 'Bolt'])).toEqual({
      status: 1,
      stdout: '',
      stderr: `2 accounts have the name Bolt. Use the ID of one of them: ${first.account_id}, ${second.account_id}\n`,
    })
    expect(await muster.run(['account', 'suspend', 'Nobody'])).toEqual({
      status: 1,
      stdout: '',
      stderr: 'There is no account Nobody\n',
    })
  })
})

describe('the option --account', () => {
  it('takes the ID or the name of an account', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    await muster.json(['user', 'create', '--account', 'Acme', ...NEW_MEMBER])
    for (const account of [account_id, 'Acme']) {
      expect(await muster.json(['user', 'list', '--account', account])).toHaveLength(2)
      for (const command of ['webhook list', 'bulk list', 'deliveries undelivered'])
        expect(await muster.json([...command.split(' '), '--account', account]), command).toEqual(
          [],
        )
    }
    expect(await muster.run(['webhook', 'list', '--account', 'Nobody'])).toMatchObject({
      status: 1,
      stderr: 'There is no account Nobody\n',
    })
  })
})

describe('account quota', () => {
  it('shows the use and the limit of each quota', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    expect((await muster.run(['account', 'quota', 'Acme'])).stdout).toMatch(
      new RegExp(
        [
          '^QUOTA +USED +LIMIT',
          'requests_per_minute +60',
          'records +0 +1000000',
          'events_per_day +0 +1000000',
          'webhooks +0 +50',
          'users +1 +500',
          'keys_per_user +0 +100',
          'export_mib +0 +1024',
          'unfinished_exports +0 +3',
          'unfinished_imports +0 +3\n$',
        ].join('\n'),
      ),
    )
    expect(await muster.json(['account', 'quota', 'Acme'])).toMatchObject({ account_id })
  })

  it('sets a quota, and resets it to its default', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    const quota = (...options: string[]) => muster.run(['account', 'quota', 'Acme', ...options])
    expect((await quota('--records', '5', '--webhooks', '2')).stdout).toMatch(
      /records +0 +5\n.*\nwebhooks +0 +2\n/,
    )
    expect((await quota('--records', 'default')).stdout).toMatch(
      /records +0 +1000000\n.*\nwebhooks +0 +2\n/,
    )
    expect(await quota('--records', '-1')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Use a whole number, or "default".'),
    })
    expect((await quota('--requests-per-minute', '600')).stdout).toMatch(
      /requests_per_minute +600\n/,
    )
    expect(await quota('--requests-per-minute', '0')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Use a whole number from 1 to 1000000000, or "default".'),
    })
  })

  it('limits the users and keys that commands create', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    await muster.json(['account', 'quota', 'Acme', '--users', '1', '--keys-per-user', '0'])
    expect(await muster.run(['user', 'create', '--account', 'Acme', ...NEW_MEMBER])).toMatchObject({
      status: 1,
      stderr: 'An account can have at most 1 user.\n',
    })
    const key = ['--email', 'ann@example.com', '--name', 'Second', '--access', 'read_only']
    expect(await muster.run(['key', 'create', ...key])).toMatchObject({
      status: 1,
      stderr: 'A user can have at most 0 API keys. Revoke one that you no longer need.\n',
    })
  })
})
