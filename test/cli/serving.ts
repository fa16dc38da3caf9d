/** Runs `muster serve`, and waits until it is ready. */
import type { Muster, RunOptions, Started } from './muster.ts'

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

/** For `muster serve`. */
export const SERVE_ENVIRONMENT = { PORT: '0', LOG_LEVEL: 'warn' }

export async function startServing(
  muster: Muster,
  options: RunOptions = {},
): Promise<Started & { ready: Ready }> {
  const started = muster.start(['serve', '--json'], {
    ...options,
    environment: { ...SERVE_ENVIRONMENT, ...options.environment },
  })
  const ready = await new Promise<Ready>((resolve, reject) => {
    started.process.stdout?.on('data', () => {
      if (started.output.stdout.includes('\n')) resolve(JSON.parse(started.output.stdout))
    })
    started.ended.then(({ stderr }) => reject(new Error(stderr)), reject)
  })
  return { ...started, ready }
}
