import { etagOf, ifMatchHolds, ifNoneMatchNames } from '../operations/etag.ts'
import { assertRecordSize } from '../operations/record-size.ts'
import { readPageStart, writeCursor } from '../records/cursor.ts'
import { ACCEPTED_HEADERS, crossOrigin } from './cross-origin.ts'
import { respondToErrors } from './errors.ts'
import { assertHeaders } from './http.ts'
import { identify } from './identify.ts'
import { readInput } from './input.ts'
import { serveApi } from './openapi.ts'
import { setLinkToNextPage } from './respond.ts'

/** The parts of the service that the mock of the API uses: `muster mock` passes them to
 *  `createMock`. */
export const serviceParts = {
  acceptedHeaders: ACCEPTED_HEADERS,
  assertHeaders,
  assertRecordSize,
  respondToErrors,
  crossOrigin,
  etagOf,
  identify,
  ifMatchHolds,
  ifNoneMatchNames,
  readInput,
  readPageStart,
  serveApi,
  setLinkToNextPage,
  writeCursor,
}
