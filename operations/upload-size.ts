/** The limit of uploaded files. */
import { StatusError } from '../errors.ts'

export const MAX_UPLOAD_BYTES = 64 * 1024 * 1024

export function newUploadTooLarge(): StatusError {
  // The rest of the file is not read, so the connection cannot carry another request.
  return new StatusError(413, 'The file is larger than 64 MiB.', { Connection: 'close' })
}
