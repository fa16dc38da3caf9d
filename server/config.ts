/** Parses the settings from the environment variables, once at the start. */
import { existsSync, mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { type CleanedEnv, cleanEnv, EnvMissingError, makeValidator, str } from 'envalid'
import ipaddr from 'ipaddr.js'
import { Refused } from '../errors.ts'
import { findStandbyUrlProblem, findUrlProblem } from '../records/database/hosts.ts'
import { type ConnectionLimits, DEFAULT_LIMITS } from '../records/database/limits.ts'
import { sqliteFile } from '../records/database/open.ts'
import type { StandbyPlace } from '../records/database/standby.ts'
import { FILE_DAYS } from '../records/file-jobs.ts'
import { FIXED_DEFAULTS, type Quotas } from '../records/quotas.ts'
import type { RetentionDays } from '../records/removal-run.ts'
import { REQUEST_LOG_DAYS } from '../records/request-log.ts'
import type { ClientCertificate } from '../webhooks/transport/client-certificate.ts'
import type { Cidr } from '../webhooks/transport/egress.ts'
import { type SecretKeys, secretKeysOf } from '../webhooks/transport/secret.ts'
import { CLIENT_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_CONNECTIONS, urlOf } from './http.ts'
import { type SecretKeyFiles, secretKeyFiles } from './secret-key-files.ts'

/** The message names every invalid setting. */
class ConfigError extends Refused {
  override name = 'ConfigError'
}

export interface Config {
  /** 0 lets the system choose. */
  port: number
  host: string
  /** The port of `/metrics` and `/violations`. Undefined: they are on `port`, but in production on
   *  no port. */
  metricsPort: number | undefined
  /** The URL of this service for clients, without a trailing slash. */
  baseUrl: string
  database: ({ databaseUrl: string; directUrl: string } & ConnectionLimits) | { dataDir: string }
  /** Where the figures, logs and lists of the console and the exports are read. */
  standby: StandbyPlace | undefined
  /** How long a statement of a request or a worker may run on PostgreSQL. */
  statementTimeoutMs: number
  role: 'all' | 'api' | 'worker'
  /** How long a node serves requests after SIGTERM, while /readyz responds with 503. */
  drainMs: number
  /** How long a connection may be idle between two requests. */
  keepAliveTimeoutMs: number
  /** How long a client may take to send a whole request, and to read each part of the response. */
  clientTimeoutMs: number
  /** The most open connections of clients to this node. */
  maxConnections: number
  /** The start of this node pauses the deliveries of the installation. */
  pausesDeliveries: boolean
  /** The keys that encrypt the webhook signing secrets in the database. */
  secretKeys: SecretKeys
  /** Set when the keys are files of `DATA_DIR`. */
  secretKeyFiles: SecretKeyFiles | undefined
  /** NODE_ENV is `production`: for example, the start fails if an operation has no handler. */
  isProduction: boolean
  isSignUpOpen: boolean
  logLevel: string
  /** The window of `quotas.requests_per_minute`. Always 60, as in the contract, except in tests. */
  rateLimitWindowSeconds: number
  /** The most requests of one user that a node works on at once. */
  requestsInFlightPerUser: number
  /** The quotas of an account for which an operator has set no others. */
  quotas: Quotas
  /** The most bytes of paths, bodies and headers that a node stores for one account in a day (UTC). Above
   *  this limit, bodies are left out. */
  requestLogBytesPerDay: number
  /** Private IP ranges that webhooks may reach. */
  webhookAllowedRanges: Cidr[]
  /** Carries the connections of webhooks to public IP addresses. May contain a password. */
  webhookProxy: URL | undefined
  /** The files of the certificate for endpoints that ask for one. */
  webhookCertificateFiles: ClientCertificate | undefined
  /** The delay before each of the attempts 2 to 10, from the end of the attempt before. */
  webhookRetryDelaysMs: number[]
  /** Time limit of one attempt, from connecting to the end of the response. An attempt that has a
   *  status by then ends with the outcome of this status, not as a timeout. */
  webhookTimeoutMs: number
  /** A webhook is disabled when all its attempts have failed for this long. 0: never. */
  disableWebhooksAfterDays: number
  retentionDays: RetentionDays
  /** The reaction to a response that breaks the contract: nothing, a log line, or a 500. */
  validateResponses: 'off' | 'log' | 'enforce'
  /** The number of proxies in front of this service, each of which adds to `X-Forwarded-For`. */
  trustedProxies: number
  /** Origins whose pages may call the API from a browser. None by default. */
  corsOrigins: string[]
}

/** service-spec §8: two quick retries, then 1 min, 5 min, 30 min, 2 h, 5 h, 10 h and 24 h. */
const RETRY_DELAYS_SECONDS = [5, 5, 60, 300, 1_800, 7_200, 18_000, 36_000, 86_400]

const splitList = (input: string): string[] =>
  input
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

const integer = (min: number, max: number) =>
  makeValidator<number>((input) => {
    const value = Number(input)
    if (!/^\d+$/.test(input) || value < min || value > max)
      throw new Error(`must be a whole number from ${min} to ${max}, not "${input}"`)
    return value
  })

const httpUrl = makeValidator<string>((input) => {
  if (!URL.canParse(input) || !/^https?:$/.test(new URL(input).protocol))
    throw new Error(`must be an http or https URL, not "${input}"`)
  return input.replace(/\/+$/, '')
})

const proxyUrl = makeValidator<URL>((input) => {
  const url = URL.parse(input)
  if (!url || !/^https?:$/.test(url.protocol) || !/^\/?$/.test(url.pathname + url.search))
    throw new Error(
      'must be an http or https URL without a path, such as http://proxy.internal:3128',
    )
  return url
})

const urlWithout = (findProblem: (url: string) => string | undefined) =>
  makeValidator<string>((input) => {
    const problem = findProblem(input)
    if (problem !== undefined) throw new Error(problem)
    return input
  })

const postgresUrl = urlWithout(findUrlProblem)

const secret = makeValidator<string>((input) => {
  if (input.length < 32) throw new Error('must be at least 32 characters long')
  return input
})

const paused = makeValidator<'paused'>((input) => {
  if (input !== 'paused')
    throw new Error('must be "paused" or not set: "muster deliveries unpause" ends a pause')
  return input
})

const cidrs = makeValidator<Cidr[]>((input) =>
  splitList(input).map((range) => {
    try {
      return ipaddr.parseCIDR(range)
    } catch {
      throw new Error(`must be comma-separated IP ranges such as 127.0.0.0/8, not "${range}"`)
    }
  }),
)

const origins = makeValidator<string[]>((input) =>
  splitList(input).map((origin) => {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw new Error(
        `must be comma-separated origins such as https://app.example.com, not "${origin}"`,
      )
    return origin
  }),
)

const delays = makeValidator<number[]>((input) => {
  const seconds = splitList(input).map(Number)
  if (
    seconds.length !== RETRY_DELAYS_SECONDS.length ||
    !seconds.every((value) => value >= 0 && value <= 7 * 86_400)
  )
    throw new Error(
      `must be ${RETRY_DELAYS_SECONDS.length} comma-separated numbers of seconds, ` +
        `such as "${RETRY_DELAYS_SECONDS.join(',')}"`,
    )
  return seconds
})

/** Every setting, with its allowed values and default. docs/settings.md has a row for each. */
export const settings = {
  PORT: integer(0, 65_535)({ default: 3000 }),
  HOST: str({ default: '127.0.0.1' }),
  METRICS_PORT: integer(0, 65_535)({ default: undefined }),
  BASE_URL: httpUrl({ default: undefined }),
  DATA_DIR: str({ default: './data' }),
  DATABASE_URL: postgresUrl({ default: undefined }),
  DATABASE_DIRECT_URL: postgresUrl({ default: undefined }),
  DATABASE_READ_URL: urlWithout(findStandbyUrlProblem)({ default: undefined }),
  DATABASE_READ_MAX_LAG_MS: integer(2_000, 600_000)({ default: 10_000 }),
  DATABASE_POOL_SIZE: integer(2, 1_000)({ default: DEFAULT_LIMITS.poolSize }),
  QUEUE_POOL_SIZE: integer(2, 1_000)({ default: DEFAULT_LIMITS.queuePoolSize }),
  DATABASE_STATEMENT_TIMEOUT_MS: integer(100, 3_600_000)({ default: 15_000 }),
  DATABASE_LOCK_TIMEOUT_MS: integer(100, 3_600_000)({ default: DEFAULT_LIMITS.lockTimeoutMs }),
  DATABASE_KEEP_ALIVE_MS: integer(1_000, 3_600_000)({ default: DEFAULT_LIMITS.keepAliveMs }),
  ROLE: str({ choices: ['all', 'api', 'worker'], default: 'all' }),
  DELIVERIES: paused({ default: undefined }),
  SECRET_KEY: secret({ default: undefined }),
  SECRET_KEY_PREVIOUS: secret({ default: undefined }),
  DRAIN_MS: integer(0, 3_600_000)({ default: 5_000 }),
  KEEP_ALIVE_TIMEOUT_MS: integer(1_000, 3_600_000)({ default: KEEP_ALIVE_TIMEOUT_MS }),
  CLIENT_TIMEOUT_MS: integer(1_000, 3_600_000)({ default: CLIENT_TIMEOUT_MS }),
  MAX_CONNECTIONS: integer(10, 1_000_000)({ default: MAX_CONNECTIONS }),
  NODE_ENV: str({ default: 'development' }),
  SIGN_UP: str({ choices: ['on', 'off'], default: 'on' }),
  LOG_LEVEL: str({
    choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
  }),
  RATE_LIMIT_PER_MINUTE: integer(1, 1_000_000_000)({ default: 60 }),
  REQUESTS_IN_FLIGHT_PER_USER: integer(1, 1_000_000)({ default: 10 }),
  RECORDS_PER_ACCOUNT: integer(1, 1_000_000_000)({ default: 1_000_000 }),
  EVENTS_PER_ACCOUNT_AND_DAY: integer(1, 1_000_000_000)({ default: 1_000_000 }),
  EXPORTS_UNFINISHED_PER_ACCOUNT: integer(1, 1_000_000)({ default: 3 }),
  IMPORTS_UNFINISHED_PER_ACCOUNT: integer(1, 1_000_000)({ default: 3 }),
  EXPORT_MIB_PER_ACCOUNT: integer(1, 1_000_000_000)({ default: 1024 }),
  REQUEST_LOG_MIB_PER_DAY: integer(0, 1_000_000_000)({ default: 256 }),
  WEBHOOK_ALLOW_ADDRESSES: cidrs({ default: [] }),
  WEBHOOK_PROXY: proxyUrl({ default: undefined }),
  WEBHOOK_CLIENT_CERT_FILE: str({ default: undefined }),
  WEBHOOK_CLIENT_KEY_FILE: str({ default: undefined }),
  WEBHOOK_RETRY_DELAYS: delays({ default: RETRY_DELAYS_SECONDS }),
  WEBHOOK_TIMEOUT_MS: integer(1, 60_000)({ default: 15_000 }),
  WEBHOOK_DISABLE_AFTER_DAYS: integer(0, 365)({ default: 5 }),
  EVENT_RETENTION_DAYS: integer(1, 36_500)({ default: 90 }),
  ATTEMPT_RETENTION_DAYS: integer(1, 36_500)({ default: 30 }),
  REQUEST_LOG_RETENTION_DAYS: integer(REQUEST_LOG_DAYS, 36_500)({ default: REQUEST_LOG_DAYS }),
  EXPORT_RETENTION_DAYS: integer(FILE_DAYS + 1, 36_500)({ default: 90 }),
  AUDIT_LOG_RETENTION_DAYS: integer(1, 36_500)({ default: 400 }),
  VALIDATE_RESPONSES: str({ choices: ['off', 'log', 'enforce'], default: 'log' }),
  TRUSTED_PROXIES: integer(0, 10)({ default: 0 }),
  CORS_ORIGINS: origins({ default: [] }),
}

/** Reads and checks the settings. Throws `ConfigError`. Creates `DATA_DIR` and its secret key when
 *  an installation without data needs them, unless `createsFiles` is false. */
export function readConfig(
  environment: Record<string, string | undefined>,
  { createsFiles = true }: { createsFiles?: boolean } = {},
): Config {
  const env = readSettings(environment)
  assertConsistent(env, environment)
  const dataDir = resolve(env.DATA_DIR)
  const keyFiles = env.SECRET_KEY === undefined ? secretKeyFiles(dataDir) : undefined
  if (keyFiles && createsFiles) createFirstKey(dataDir, keyFiles)

  return {
    port: env.PORT,
    host: env.HOST,
    metricsPort: env.METRICS_PORT,
    baseUrl: env.BASE_URL ?? urlOf(env.HOST, env.PORT),
    database:
      env.DATABASE_URL === undefined
        ? { dataDir }
        : {
            databaseUrl: env.DATABASE_URL,
            directUrl: env.DATABASE_DIRECT_URL ?? env.DATABASE_URL,
            poolSize: env.DATABASE_POOL_SIZE,
            queuePoolSize: env.QUEUE_POOL_SIZE,
            lockTimeoutMs: env.DATABASE_LOCK_TIMEOUT_MS,
            keepAliveMs: env.DATABASE_KEEP_ALIVE_MS,
          },
    standby:
      env.DATABASE_READ_URL === undefined
        ? undefined
        : { url: env.DATABASE_READ_URL, maxLagMs: env.DATABASE_READ_MAX_LAG_MS },
    statementTimeoutMs: env.DATABASE_STATEMENT_TIMEOUT_MS,
    role: env.ROLE,
    drainMs: env.DRAIN_MS,
    keepAliveTimeoutMs: env.KEEP_ALIVE_TIMEOUT_MS,
    clientTimeoutMs: env.CLIENT_TIMEOUT_MS,
    maxConnections: env.MAX_CONNECTIONS,
    pausesDeliveries: env.DELIVERIES === 'paused',
    secretKeys: keyFiles ?? secretKeysOf(env.SECRET_KEY ?? '', env.SECRET_KEY_PREVIOUS),
    secretKeyFiles: keyFiles,
    isProduction: env.NODE_ENV === 'production',
    isSignUpOpen: env.SIGN_UP === 'on',
    logLevel: env.LOG_LEVEL,
    rateLimitWindowSeconds: 60,
    requestsInFlightPerUser: env.REQUESTS_IN_FLIGHT_PER_USER,
    quotas: {
      requests_per_minute: env.RATE_LIMIT_PER_MINUTE,
      records: env.RECORDS_PER_ACCOUNT,
      events_per_day: env.EVENTS_PER_ACCOUNT_AND_DAY,
      export_mib: env.EXPORT_MIB_PER_ACCOUNT,
      unfinished_exports: env.EXPORTS_UNFINISHED_PER_ACCOUNT,
      unfinished_imports: env.IMPORTS_UNFINISHED_PER_ACCOUNT,
      ...FIXED_DEFAULTS,
    },
    requestLogBytesPerDay: env.REQUEST_LOG_MIB_PER_DAY * 1024 ** 2,
    webhookAllowedRanges: env.WEBHOOK_ALLOW_ADDRESSES,
    webhookProxy: env.WEBHOOK_PROXY,
    webhookCertificateFiles: certificateFiles(env),
    webhookRetryDelaysMs: env.WEBHOOK_RETRY_DELAYS.map((seconds) => Math.round(seconds * 1000)),
    webhookTimeoutMs: env.WEBHOOK_TIMEOUT_MS,
    disableWebhooksAfterDays: env.WEBHOOK_DISABLE_AFTER_DAYS,
    retentionDays: {
      events: env.EVENT_RETENTION_DAYS,
      attempts: env.ATTEMPT_RETENTION_DAYS,
      requestLog: env.REQUEST_LOG_RETENTION_DAYS,
      exports: env.EXPORT_RETENTION_DAYS,
      auditLog: env.AUDIT_LOG_RETENTION_DAYS,
    },
    validateResponses: env.VALIDATE_RESPONSES,
    trustedProxies: env.TRUSTED_PROXIES,
    corsOrigins: env.CORS_ORIGINS,
  }
}

/** Throws `ConfigError` when one of the two files is missing. */
function certificateFiles({
  WEBHOOK_CLIENT_CERT_FILE: cert,
  WEBHOOK_CLIENT_KEY_FILE: key,
}: Settings): ClientCertificate | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key }
  if (cert === undefined && key === undefined) return undefined
  throw new ConfigError('WEBHOOK_CLIENT_CERT_FILE and WEBHOOK_CLIENT_KEY_FILE need each other')
}

type Settings = CleanedEnv<typeof settings>

function readSettings(environment: Record<string, string | undefined>): Settings {
  // An empty variable counts as not set.
  const variables = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== ''),
  )
  return cleanEnv(variables, settings, {
    reporter({ errors }) {
      const lines = Object.entries(errors).map(
        ([name, error]) =>
          `${name} ${error instanceof EnvMissingError ? 'is missing' : error?.message}`,
      )
      if (lines.length > 0) throw new ConfigError(lines.join('\n'))
    },
  })
}

/** Throws `ConfigError` when settings contradict each other. */
function assertConsistent(env: Settings, environment: Record<string, string | undefined>): void {
  if (env.NODE_ENV === 'production' && environment.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    throw new ConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED 0 would send webhooks to anyone who claims to be the ' +
        'receiver. Remove it, and trust a private certificate authority with NODE_EXTRA_CA_CERTS',
    )
  const isEmbedded = env.DATABASE_URL === undefined
  if (isEmbedded && env.ROLE !== 'all')
    throw new ConfigError(
      `ROLE ${env.ROLE} needs DATABASE_URL: the embedded database serves one process`,
    )
  if (isEmbedded && env.DATABASE_DIRECT_URL !== undefined)
    throw new ConfigError(
      'DATABASE_DIRECT_URL needs DATABASE_URL, which leads to the same database',
    )
  if (isEmbedded && env.DATABASE_READ_URL !== undefined)
    throw new ConfigError('DATABASE_READ_URL needs DATABASE_URL, which leads to the primary')
  if (!isEmbedded && env.SECRET_KEY === undefined)
    throw new ConfigError(
      'SECRET_KEY is missing: with DATABASE_URL every node needs the same one, ' +
        'of at least 32 characters',
    )
  if (env.SECRET_KEY === undefined && env.SECRET_KEY_PREVIOUS !== undefined)
    throw new ConfigError('SECRET_KEY_PREVIOUS needs SECRET_KEY, the key that replaces it')
}

/** Creates the key of a new installation. Never replaces a lost key beside a database: the signing
 *  secrets in the database are encrypted with the lost key. Commands that need no key work without
 *  one. */
function createFirstKey(dataDir: string, files: SecretKeyFiles): void {
  createDataDir(dataDir)
  // The key is always created before the database.
  if (!existsSync(sqliteFile(dataDir))) files.createMissing()
}

function createDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new ConfigError(
      `DATA_DIR ${dataDir} cannot be created: ${(error as Error).message}. ` +
        'Set DATA_DIR to another folder.',
      { cause: error },
    )
  }
}
