/** Tells operators what to do about an error of the database or of DATA_DIR. */
import { resolve, sep } from 'node:path'
import {
  errorCode,
  isLoginRefused,
  isPermissionDenied,
  isTlsFailure,
  isUnavailable,
  OutcomeUnknown,
} from '../records/database/errors.ts'
import { sqliteFile } from '../records/database/open.ts'
import type { Environment } from './shell.ts'

interface Case {
  codes: RegExp
  describe(dataDir: string, reason: string): string
}

const DATA_DIR_CASES: Case[] = [
  {
    codes: /^SQLITE_(CORRUPT|NOTADB)/,
    describe: (dataDir, reason) =>
      `The database file ${sqliteFile(dataDir)} is damaged: ${reason}. Stop the service, move muster.sqlite, ` +
      'muster.sqlite-wal and muster.sqlite-shm to another folder, and restore a backup: see "muster backup --help".',
  },
  {
    codes: /^SQLITE_(BUSY|LOCKED)/,
    describe: (dataDir, reason) =>
      `Another process writes to DATA_DIR ${dataDir}: ${reason}. Run the command again.`,
  },
  {
    codes: /^(SQLITE_FULL|ENOSPC)/,
    describe: (dataDir, reason) => `The disk of DATA_DIR ${dataDir} is full: ${reason}. Make room.`,
  },
  {
    codes: /^SQLITE_IOERR/,
    describe: (dataDir, reason) =>
      `The disk of DATA_DIR ${dataDir} is faulty or full: ${reason}. Check the disk, and make room.`,
  },
  {
    codes: /^(SQLITE_(CANTOPEN|READONLY|PERM)|EACCES|EPERM|EROFS|ENOTDIR)/,
    describe: (dataDir, reason) =>
      `DATA_DIR ${dataDir} cannot be written: ${reason}. Let this user write the folder and its files, or ` +
      'set DATA_DIR to another folder.',
  },
]

/** What happened and what to do about it. Undefined: the error is of another kind. */
export function describeDatabaseError(
  error: unknown,
  environment: Environment,
): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof OutcomeUnknown)
    return `The change may have been made. Check before you run the command again. ${describeCause(error, environment)}`
  const reason = reasonOf(error)
  const dataDir = resolve(environment.DATA_DIR || './data')
  const found = DATA_DIR_CASES.find(({ codes }) => codes.test(errorCode(error)))
  // Codes of the operating system also occur for other files.
  if (found && (errorCode(error).startsWith('SQLITE_') || isInside(error, dataDir)))
    return found.describe(dataDir, reason)
  if (isLoginRefused(error))
    return `PostgreSQL refuses the user or the password of DATABASE_URL: ${reason}. Correct DATABASE_URL.`
  if (isPermissionDenied(error))
    return `PostgreSQL denies the user of DATABASE_URL a permission: ${reason}. Make this user the owner of the database.`
  if (isTlsFailure(error))
    return `TLS to PostgreSQL failed: ${reason}. Correct sslmode in DATABASE_URL, or the certificate of the server.`
  if (isUnavailable(error))
    return `The database cannot be reached or is overloaded: ${reason}. Check DATABASE_URL, the server and the network.`
  return undefined
}

function describeCause({ cause }: OutcomeUnknown, environment: Environment): string {
  return (
    describeDatabaseError(cause, environment) ?? `The commit failed: ${reasonOf(cause as Error)}.`
  )
}

/** The message without the statement that knex puts before it. If there is no message, the code:
 *  Node gives no message when a host name has several IP addresses and none of them responds. */
function reasonOf(error: Error): string {
  // The message of this error advises programmers, not operators.
  if (error.name === 'KnexTimeoutError') return 'no connection in time'
  return error.message.split(' - ').at(-1) || errorCode(error)
}

function isInside(error: Error, folder: string): boolean {
  const path = 'path' in error ? resolve(String(error.path)) : ''
  return path === folder || path.startsWith(folder + sep)
}
