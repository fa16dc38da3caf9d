import { describe, expect, it } from 'vitest'
import { startApp, type TestAccount, type TestApp, until } from '../helpers.ts'
import { runHousekeeping } from '../housekeeping.ts'
import { DAY, HOUR, logRequests, MINUTE } from './logged-requests.ts'

describe('stored counts of API requests', () => {
  it('equal the log, and are deleted with it', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        app.as(account).get(index % 4 === 0 ? '/tasks/nothing' : '/tasks'),
      ),
    )
    await until(
      'all requests are logged',
      async () => (await readCounts(app, account)).requests === 20,
    )
    expect(await readCounts(app, account)).toEqual({
      requests: 20,
      ok: 15,
      client_errors: 5,
      minutes: 20,
      hours: 20,
    })

    const old = Date.now() - 31 * DAY
    await logRequests(app, account, [{ at: old }, { at: old - HOUR }])
    expect(await readCounts(app, account)).toMatchObject({
      requests: 22,
      ok: 17,
      minutes: 22,
      hours: 22,
    })
    await runHousekeeping(app, 'minute')
    expect(await readCounts(app, account)).toEqual({
      requests: 20,
      ok: 15,
      client_errors: 5,
      minutes: 20,
      hours: 20,
    })
  })

  it('of concurrent writers add up', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    await Promise.all(
      Array.from({ length: 8 }, () =>
        logRequests(
          app,
          account,
          Array.from({ length: 25 }, (_, index) => ({ status: index % 2 === 0 ? 200 : 500 })),
        ),
      ),
    )
    expect(await readCounts(app, account)).toEqual({
      requests: 200,
      // Each of the 8 writers has logged 13.
      ok: 104,
      client_errors: 0,
      minutes: 200,
      hours: 200,
    })
  })

  /** The number of requests in the log and, as stored counts have it, by status and by span. */
  async function readCounts(app: TestApp, { accountId }: TestAccount) {
    const [minutes] = await app.db
      .read('request_minutes')
      .where({ account_id: accountId })
      .sum({ ok: 'ok', client_errors: 'client_errors', server_errors: 'server_errors' })
    const [requests] = await app.db
      .read('request_log')
      .where({ account_id: accountId })
      .count({ count: '*' })
    const sumOfSpans = async (span: number): Promise<number> => {
      const [row] = await app.db
        .read('request_counts')
        .where({ account_id: accountId, span_ms: span })
        .sum({ requests: 'requests' })
      return Number(row?.requests)
    }
    return {
      requests: Number(requests?.count),
      ok: Number(minutes?.ok),
      client_errors: Number(minutes?.client_errors),
      minutes: await sumOfSpans(MINUTE),
      hours: await sumOfSpans(HOUR),
    }
  }
})
