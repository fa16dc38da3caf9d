import { operations } from '../generated/operations.ts'
import { etagOf, ifMatchHolds, ifNoneMatchHolds } from '../operations/etag.ts'
import type { Context } from './context.ts'
import { ACCEPTED_HEADERS, crossOrigin } from './cross-origin.ts'
import { answerErrors } from './errors.ts'
import { identify } from './identify.ts'
import { readInput } from './input.ts'
import { type AssertAuthenticated, compileRoutes, findOperation } from './router.ts'

const match = compileRoutes(operations)

/** The parts of the service that the mock of the API uses: `muster mock` passes it to `createMock`. */
export const serviceParts = {
  acceptedHeaders: ACCEPTED_HEADERS,
  answerErrors,
  crossOrigin,
  etagOf,
  findOperation: (ctx: Context, assertAuthenticated: AssertAuthenticated) =>
    findOperation(ctx, match, assertAuthenticated),
  identify,
  ifMatchHolds,
  ifNoneMatchHolds,
  readInput,
}
