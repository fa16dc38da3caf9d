/** Runs `muster serve`, and waits until it is ready. */
import { type Muster, type RunOptions, type Started, waitForDocument } from './muster.ts'

export interface Ready {
  url: string
  first_account: {
    account_id: string
    user_id: string
    email: string
    password: string
    token: string
  } | null
}

/** The environment of `muster serve` in tests. */
export const SERVE_ENVIRONMENT = { PORT: '0', LOG_LEVEL: 'warn' }

export async function startServing(
  muster: Muster,
  options: RunOptions = {},
): Promise<Started & { ready: Ready }> {
  const started = muster.start(['serve', '--json'], {
    ...options,
    environment: { ...SERVE_ENVIRONMENT, ...options.environment },
  })
  const ready: Ready = await waitForDocument(started)
  return { ...started, ready }
}
