/** The secret key in embedded mode without SECRET_KEY: a file in DATA_DIR that its owner alone can
 *  read. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { Refused } from '../errors.ts'
import { giveToFolderOwner } from '../records/database/owner.ts'
import type { SecretKeys } from '../webhooks/transport/secret.ts'

/** Names the file of the key in messages. Hides the path of the folder, because users of the
 *  console may read the messages. */
const PLACE = 'DATA_DIR/secret.key'
const KEY_BYTES = 32
const MIN_LENGTH = 32

export interface SecretKeyFiles extends SecretKeys {
  /** Creates the key if there is none. */
  createMissing(): void
  /** Moves the key to `secret.key.previous` and creates a new one. After a crash at any point, one
   *  of the two files holds the key that this process had. */
  replace(): void
}

export function secretKeyFiles(dataDir: string): SecretKeyFiles {
  const file = join(dataDir, 'secret.key')
  const previousFile = `${file}.previous`
  let newest: string | undefined
  let previous: string | undefined
  const read = (): void => {
    // A running node keeps the newest key when its file is gone.
    newest = readKey(file) ?? newest
    previous = readKey(previousFile)
  }
  const files: SecretKeyFiles = {
    place: PLACE,
    newest() {
      if (newest === undefined) read()
      if (newest !== undefined) return newest
      throw new Refused(
        `${PLACE} is missing. The signing secrets in the database are encrypted with this key. ` +
          'Restore the file from your backup, or set SECRET_KEY to the key. ' +
          'If the key is lost, see "muster secret-key reset --help".',
      )
    },
    previous() {
      if (newest === undefined) read()
      return previous
    },
    reload() {
      try {
        read()
      } catch (error) {
        if (newest === undefined) throw error
      }
    },
    createMissing() {
      createKey(dataDir, file)
      read()
    },
    replace() {
      writeAtomically(dataDir, previousFile, files.newest())
      writeAtomically(dataDir, file, newKey())
      read()
    },
  }
  return files
}

const newKey = (): string => randomBytes(KEY_BYTES).toString('base64url')

/** Undefined: the file does not exist. */
function readKey(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const key = readText(file).trim()
  if (key.length >= MIN_LENGTH) return key
  throw new Refused(
    `DATA_DIR/${basename(file)} is damaged: a key has at least ${MIN_LENGTH} characters. ` +
      'Restore it from your backup.',
  )
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Refused(
      `DATA_DIR/${basename(file)} cannot be read. Make it readable for this user.`,
      {
        cause: error,
      },
    )
  }
}

/** Writes a draft and links it when it is complete, so no process reads half a key. When two
 *  processes start at once, both use the key that was linked first. */
function createKey(dataDir: string, file: string): void {
  if (existsSync(file)) return
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${newKey()}\n`, { mode: 0o600, flush: true })
  giveToFolderOwner(draft)
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  unlinkSync(draft)
  syncFolder(dataDir)
}

/** Call it under the setup lock: all processes use the same draft. */
function writeAtomically(dataDir: string, file: string, key: string): void {
  const draft = `${file}.draft`
  writeFileSync(draft, `${key}\n`, { mode: 0o600, flush: true })
  giveToFolderOwner(draft)
  renameSync(draft, file)
  syncFolder(dataDir)
}

/** A new name survives a power failure only after its folder was synced. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
