import { describe, expect, it } from 'vitest'
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

describe('account quota', () => {
  it('shows the use, sets a quota and its default again, and refuses other values', async () => {
    await using muster = await newMuster()
    const args = ['--name', 'Acme', '--email', 'ann@example.com', '--password', PASSWORD]
    const { account_id } = await muster.json(['account', 'create', ...args])
    const quota = (...options: string[]) => muster.run(['account', 'quota', 'Acme', ...options])
    expect((await quota()).stdout).toMatch(
      /^QUOTA +USED +LIMIT\nrecords +0 +1000000\nevents_per_day +0 +1000000\nwebhooks +0 +50\n$/,
    )
    expect((await quota('--records', '5', '--webhooks', '2')).stdout).toMatch(
      /records +0 +5\n.*\nwebhooks +0 +2\n/,
    )
    expect((await quota('--records', 'default')).stdout).toMatch(
      /records +0 +1000000\n.*\nwebhooks +0 +2\n/,
    )
    expect(await muster.json(['account', 'quota', 'Acme'])).toMatchObject({ account_id })
    expect(await quota('--records', '-1')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Use a whole number, or "default".'),
    })
  })
})
