import { batchKindOf, toBatchResponse } from '../operations/batch.ts'
import { ifMatchHolds, ifNoneMatchNames, recordTagOf } from '../operations/etag.ts'
import { prepareItem } from '../operations/item-steps.ts'
import { assertRecordSize } from '../operations/record-size.ts'
import { readPageStart, writeCursor } from '../records/cursor.ts'
import { ACCEPTED_HEADERS, crossOrigin } from './cross-origin.ts'
import { respondToErrors } from './errors.ts'
import { assertHeaders } from './http.ts'
import { identify } from './identify.ts'
import { readInput } from './input.ts'
import { serveApi } from './openapi.ts'
import { selectFields, setLinkToNextPage } from './respond.ts'

/** The parts of the service that the mock of the API uses: `muster mock` passes them to
 *  `createMock`. */
export const serviceParts = {
  acceptedHeaders: ACCEPTED_HEADERS,
  assertHeaders,
  assertRecordSize,
  batchKindOf,
  respondToErrors,
  crossOrigin,
  identify,
  ifMatchHolds,
  ifNoneMatchNames,
  prepareItem,
  readInput,
  readPageStart,
  recordTagOf,
  selectFields,
  serveApi,
  setLinkToNextPage,
  toBatchResponse,
  writeCursor,
}
