/** Reads the form with the file of an import. */
import { pipeline } from 'node:stream/promises'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { Upload } from '../../../generated/operations.ts'
import { MAX_UPLOAD_BYTES } from '../../../operations/upload-size.ts'
import type { Visit } from '../page.ts'

interface UploadForm {
  fields: URLSearchParams
  /** Undefined: the form has no file. */
  upload: Upload | undefined
}

const NDJSON_NAME = /\.(ndjson|jsonl)$/i

/** Stores the first file of the form while it arrives. Throws the errors of `storeUpload`. */
export async function readUploadForm({ ctx, storeFile }: Visit): Promise<UploadForm> {
  if (!ctx.is('multipart')) ctx.throw(415, 'A form with a file must be multipart/form-data.')
  const fields = new URLSearchParams()
  let stored: Promise<Upload> | undefined
  const parser = new Busboy({
    headers: ctx.req.headers as { 'content-type': string },
    // One byte more than permitted, so that the file is refused and not cut.
    limits: { files: 1, fields: 20, fieldSize: 1024, fileSize: MAX_UPLOAD_BYTES + 1 },
  })
  parser.on('field', (name, value) => fields.append(name, value))
  parser.on('file', (_name, stream, fileName) => {
    if (fileName === undefined || fileName === '') return void stream.resume()
    const mediaType = NDJSON_NAME.test(fileName) ? 'application/x-ndjson' : 'text/csv'
    stored = storeFile({ mediaType, content: read(stream) })
    // Reads the rest of a refused file, so that the parser comes to its end.
    stored.catch(() => stream.resume())
  })
  await pipeline(ctx.req, parser)
  return { fields, upload: await stored }
}

async function* read(stream: BusboyFileStream): AsyncGenerator<Buffer> {
  yield* stream.iterator({ destroyOnReturn: false })
}
