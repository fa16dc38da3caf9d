import { type Logger, pino } from 'pino'

/** Fields that hold a secret, wherever in a line they are met. */
const SECRETS = ['authorization', 'cookie', 'password', 'password_hash', 'token', 'secret', 'secretKey']

/** Lines of JSON on standard error: standard output belongs to what commands print. Written without blocking, and whole at the exit. */
export function newLogger(level: string): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[secret]' },
    },
    pino.destination({ dest: 2, sync: false }),
  )
}
