/** Tests the service or the mock of an OpenAPI document against the document. */
import { toHar } from '../scripts/contract/report/har.ts'
import { assertResponds } from '../scripts/contract/sender.ts'
import type { Contract } from '../scripts/model/contract.ts'
import { lineOf } from '../scripts/model/source.ts'
import type { Result } from '../scripts/report/result.ts'
import { checkService, type Outcome } from '../scripts/service/checks.ts'
import { readAnyContract } from '../scripts/service/read.ts'
import { startHandlers, startMock } from './document-service.ts'
import type { CheckReport } from './reports.ts'

interface DocumentTarget {
  root: string
  /** The URL of a running service. Without it, `testDocument` starts the service of the folder. */
  url?: string
  /** The credential for every security scheme. */
  key?: string
  /** Test the mock of the document instead of the service. */
  mock?: boolean
  /** Test even if the document was changed after generated/ was written. */
  allowStale?: boolean
}

/** How long requests in flight may take once the tests have ended. */
const GRACE_MS = 1_000

export async function testDocument({
  root,
  url,
  key = 'any',
  mock,
  allowStale,
}: DocumentTarget): Promise<CheckReport> {
  const contract = await readAnyContract(root)
  const start = mock ? startMock : startHandlers
  const local = { host: '127.0.0.1', port: 0, contract, allowStale }
  if (url !== undefined) await assertResponds(url)
  const server = url === undefined ? await start(root, local) : undefined
  try {
    const target = url ?? server?.url ?? ''
    const outcomes = await checkService({ contract, url: target, key })
    const failed = outcomes.some(({ failures }) => failures.length > 0)
    return {
      output: { document: toDocument(target, outcomes), text: format(outcomes), failed },
      results: outcomes.flatMap((outcome) => listResults(contract, outcome)),
      har: toHar(outcomes.flatMap(({ recordings }) => recordings)),
    }
  } finally {
    await server?.stop(GRACE_MS)
  }
}

/** The document of `--json`. */
function toDocument(url: string, outcomes: Outcome[]): object {
  return { url, operations: outcomes.map(({ recordings: _, ...outcome }) => outcome) }
}

/** Each failure has the line of the operation in the document. */
function listResults({ operations }: Contract, { operation, failures }: Outcome): Result[] {
  const place = operations.find(({ id }) => id === operation)?.place
  return failures.map((message) => ({
    level: 'error',
    rule: 'document',
    message: `${operation}: ${message}`,
    file: place?.source.file ?? null,
    line: place ? lineOf(place) : null,
  }))
}

function format(outcomes: Outcome[]): string {
  const failures = outcomes.flatMap(({ operation, failures }) =>
    failures.map((failure) => `FAIL  ${operation}: ${failure}`),
  )
  const requests = outcomes.reduce((sum, outcome) => sum + outcome.requests, 0)
  const verdict =
    failures.length === 0 ? 'all responses match the document.' : `${failures.length} failed.`
  return [...failures, `${outcomes.length} operations, ${requests} requests: ${verdict}`].join('\n')
}
