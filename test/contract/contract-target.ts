/** A service for tests of `muster contract`. */
import { startApp, type TestAccount, type TestApp } from '../helpers.ts'

/** The limit of a test that runs `muster contract`. */
export const TEST_TIMEOUT_MS = 900_000

export interface Target extends AsyncDisposable {
  app: TestApp
  account: TestAccount
  /** A Read Only key of a user without Finance access. */
  restrictedKey: string
  /** A Full Access key of the same user. */
  financeNoneKey: string
  /** A Full Access key of a user who may read payments. */
  financeReadKey: string
}

export async function startTarget(): Promise<Target> {
  const app = await startApp({ role: 'all', environment: { VALIDATE_RESPONSES: 'off' } })
  const account = await app.newAccount()
  const user = await app.newUser(account.accountId)
  const restrictedKey = await app.newKey({ ...account, ...user }, 'read_only')
  const financeNoneKey = await app.newKey({ ...account, ...user })
  const reader = await app.newUser(account.accountId, { finance: 'read' })
  const financeReadKey = await app.newKey({ ...account, ...reader })
  const keys = { restrictedKey, financeNoneKey, financeReadKey }
  return { app, account, ...keys, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

/** A case of the report that `--json` prints. */
export interface ReportedCase {
  operation: string
  name: string
  failures: { check: string; what: string; message: string; curl: string }[]
}
