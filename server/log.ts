import { type DestinationStream, type Logger, pino, type SerializedError } from 'pino'

/** Fields that hold a secret, wherever in a line they are met. */
const SECRETS = [
  'authorization',
  'cookie',
  'password',
  'password_hash',
  'token',
  'secret',
  'secretKey',
]

/** Lines of JSON on standard error: standard output belongs to what commands print. Written without blocking, and whole at the exit. */
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
        err: (error: unknown) =>
          error instanceof Error ? errorFields(pino.stdSerializers.err(error)) : error,
      },
      redact: {
        paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '[secret]',
      },
    },
    to,
  )
}

/** What happened and where. Drivers put more on their errors: the connection with all that it has prepared, the values that it was refused for. */
function errorFields({ type, message, stack, code, aggregateErrors }: SerializedError): object {
  return { type, message, stack, code, aggregateErrors: aggregateErrors?.map(errorFields) }
}
