/** Stores a file that a client or a form sends, chunk by chunk, before its operation runs. */
import { createHash } from 'node:crypto'
import { StatusError } from '../errors.ts'
import type { Upload } from '../generated/operations.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction, type Scope, type WriteScope } from '../records/database/scope.ts'
import { newId } from '../records/ids.ts'
import { deleteUpload, insertImportChunk } from '../records/imports.ts'
import { assertFileQuotas } from '../records/stored-files.ts'
import type { AccountQuotas } from './account-quota.ts'
import { MAX_UPLOAD_BYTES, newUploadTooLarge } from './upload-size.ts'

const CHUNK_BYTES = 256 * 1024

interface UploadServices {
  db: Db
  quotas: AccountQuotas
}

interface StoredUpload extends Upload {
  /** In hexadecimal. */
  sha256: string
}

/** Stores the file in short transactions. Until an import has its ID, the file belongs to nothing, and
 *  is removed after an hour. Throws 400 for a file that is empty or not UTF-8, 413, and the errors of
 *  `assertFileQuotas`. */
export async function storeUpload(
  { db, quotas }: UploadServices,
  accountId: string,
  { mediaType, content }: { mediaType: string; content: AsyncIterable<Buffer> },
): Promise<StoredUpload> {
  const inTransaction = <T>(work: (scope: WriteScope) => Promise<T>): Promise<T> =>
    accountTransaction(db, accountId, work)
  const { limits } = await quotas.of(accountId)
  await inTransaction((scope) => assertFileQuotas(scope, 'imports', limits))
  const id = newId()
  const hash = createHash('sha256')
  let byteSize = 0
  let position = 0
  try {
    for await (const chunk of inChunks(assertText(content))) {
      byteSize += chunk.length
      if (byteSize > MAX_UPLOAD_BYTES) throw newUploadTooLarge()
      hash.update(chunk)
      const place = { importId: id, kind: 'upload' as const, position: position++ }
      await inTransaction((scope) => insertImportChunk(scope, place, chunk))
    }
    if (byteSize === 0) throw new StatusError(400, 'The file is empty.')
  } catch (error) {
    await discardUpload(db, accountId, id)
    throw error
  }
  return { id, mediaType, byteSize, sha256: hash.digest('hex') }
}

/** Removes an upload that no import has. */
export function discardUpload(db: Db, accountId: string, id: string): Promise<void> {
  return accountTransaction(db, accountId, (scope: Scope) => deleteUpload(scope, id))
}

/** Throws 400 unless the file is UTF-8. */
async function* assertText(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const assertDecodable = (bytes?: Buffer): void => {
    try {
      decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      throw new StatusError(400, 'The file is not valid UTF-8.', { Connection: 'close' })
    }
  }
  for await (const bytes of content) {
    assertDecodable(bytes)
    yield bytes
  }
  assertDecodable()
}

async function* inChunks(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let length = 0
  for await (const bytes of content) {
    parts.push(bytes)
    length += bytes.length
    if (length < CHUNK_BYTES) continue
    yield Buffer.concat(parts)
    parts = []
    length = 0
  }
  if (length > 0) yield Buffer.concat(parts)
}
