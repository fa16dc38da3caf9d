import { type DestinationStream, type Logger, pino, type SerializedError } from 'pino'
import { summariseOutages } from './outage-log.ts'

/** Names of fields with secrets, at up to three levels of a log line. */
const SECRETS = [
  'authorization',
  'cookie',
  'password',
  'password_hash',
  'token',
  'secret',
  'secretKey',
]

/** Writes lines of JSON to standard error, because commands print to standard output. Does not
 *  block; flushes at the exit. */
export function newLogger(
  level: string,
  to: DestinationStream = pino.destination({ dest: 2, sync: false }),
): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: {
        // pg-boss reports some errors as plain objects with the same fields.
        err: (error: unknown) =>
          typeof error === 'object' && error !== null
            ? errorFields(pino.stdSerializers.err(error as Error))
            : error,
      },
      hooks: { logMethod: summariseOutages() },
      redact: {
        paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '[secret]',
      },
    },
    to,
  )
}

/** Leaves out what database drivers add to their errors: the connection, and the values of the
 *  statement. */
function errorFields({ type, message, stack, code, aggregateErrors }: SerializedError): object {
  return { type, message, stack, code, aggregateErrors: aggregateErrors?.map(errorFields) }
}
