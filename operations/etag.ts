import { hash } from 'node:crypto'
import { StatusError } from '../errors.ts'

/** A strong entity tag of a representation (RFC 9110 §8.8.3). */
export function etagOf(representation: string): string {
  return `"${hash('sha256', representation, 'base64url').slice(0, 22)}"`
}

/** The entity tag of a record in which the fields `embedded` are embedded. It begins with the tag of
 *  the record itself. */
export function recordTagOf(record: object, embedded: string[] = []): string {
  const tagOf = (fields: [string, unknown][]) => etagOf(JSON.stringify(Object.fromEntries(fields)))
  const fields = Object.entries(record)
  const own = tagOf(fields.filter(([name]) => !embedded.includes(name)))
  if (embedded.length === 0) return own
  return own.slice(0, -1) + tagOf(fields.filter(([name]) => embedded.includes(name))).slice(1)
}

/** The second half of such a tag. */
const EMBEDDED = /(?<=^"[\w-]{22})[\w-]{22}(?="$)/

/** Does an `If-Match` header name this version? Without a header there is no condition. An empty
 *  header names no version, and weak tags never match (RFC 9110 §13.1.1). Embedded records do not matter. */
export function ifMatchHolds(header: string | undefined, etag: string): boolean {
  if (header === undefined) return true
  return (
    header.trim() === '*' ||
    header.split(',').some((tag) => tag.trim().replace(EMBEDDED, '') === etag)
  )
}

/** Throws 412 when an `If-Match` header does not name this version. */
export function assertIfMatch(header: string | undefined, etag: string): void {
  if (ifMatchHolds(header, etag)) return
  const hasWeakTag = header?.split(',').some((tag) => tag.trim() === `W/${etag}`)
  throw hasWeakTag ? new StatusError(412, WEAK_TAG) : new RecordChanged()
}

export class RecordChanged extends StatusError {
  constructor() {
    super(412, 'The record has changed since you read it.')
  }
}

const WEAK_TAG =
  'If-Match has a weak ETag (W/"…"), which matches no version. A proxy that compresses responses adds W/. ' +
  'Send the ETag without W/.'

/** Does an `If-None-Match` header name this version, by weak comparison (RFC 9110 §13.1.2)? The
 *  Cache-Control of the request does not matter: `fetch` in browsers adds `no-cache` to requests
 *  with `If-None-Match`. */
export function ifNoneMatchNames(header: string, etag: string): boolean {
  return (
    header.trim() === '*' ||
    header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  )
}
