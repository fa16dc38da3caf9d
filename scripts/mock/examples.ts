/** The examples of openapi.yaml. */
import OpenAPIBackendModule, { type Document } from 'openapi-backend'
import { Refused } from '../../errors.ts'
import { type OperationId, operations } from '../../generated/operations.ts'
import { responses } from '../../generated/validators.js'

// The package is CommonJS: its default export is one level down.
const OpenAPIBackend = OpenAPIBackendModule.default ?? OpenAPIBackendModule

interface Example {
  /** By lower-case name. */
  headers: Record<string, string>
  /** Null if the response has no body. */
  mediaType: string | null
  body: unknown
}

export interface Examples {
  /** The names in `examples`. Empty if the response only has `example`. */
  names(id: OperationId, status: number): string[]
  mediaTypes(id: OperationId, status: number): string[]
  find(id: OperationId, status: number, options?: { name?: string; mediaType?: string }): Example
}

interface DeclaredResponse {
  headers?: Record<string, { example?: unknown; required?: boolean }>
  content?: Record<string, DeclaredMedia>
}

interface DeclaredMedia {
  example?: unknown
  examples?: Record<string, { value?: unknown }>
}

/** Throws `Refused` if an example breaks the contract. */
export async function readExamples(document: unknown): Promise<Examples> {
  const examples = await loadExamples(document)
  const problems = (Object.keys(operations) as OperationId[]).flatMap((id) =>
    checkExamples(id, examples),
  )
  if (problems.length > 0) throw new Refused(formatProblems(problems))
  return examples
}

async function loadExamples(document: unknown): Promise<Examples> {
  // A copy: `init` replaces references by their targets.
  const api = new OpenAPIBackend({
    definition: structuredClone(document) as Document,
    quick: true,
    validate: false,
  })
  await api.init()
  // `getOperation` builds all operations for each look-up, which takes quadratic time in all.
  const known = new Map(
    api.router.getOperations().map(({ operationId, responses }) => [operationId, responses]),
  )
  const declared = (id: OperationId, status: number): DeclaredResponse =>
    (known.get(id)?.[status] ?? {}) as DeclaredResponse
  const mediaTypes: Examples['mediaTypes'] = (id, status) =>
    Object.keys(declared(id, status).content ?? {})
  return {
    mediaTypes,
    names: (id, status) =>
      Object.values(declared(id, status).content ?? {}).flatMap(({ examples = {} }) =>
        Object.keys(examples),
      ),
    find(id, status, { name, mediaType = mediaTypes(id, status)[0] } = {}) {
      // An optional header would be wrong here, for example Idempotent-Replayed.
      const required = Object.entries(declared(id, status).headers ?? {}).filter(
        ([, header]) => header.required,
      )
      const headers = Object.fromEntries(
        required.map(([header, { example }]) => [header.toLowerCase(), String(example ?? '')]),
      )
      if (mediaType === undefined) return { headers, mediaType: null, body: undefined }
      return { headers, mediaType, body: findBody(declared(id, status).content?.[mediaType], name) }
    },
  }
}

/** The example of that name, or the first. `muster lint` reports a body without an example. */
function findBody({ example, examples = {} }: DeclaredMedia = {}, name?: string): unknown {
  const named = name === undefined ? undefined : examples[name]
  return named ? named.value : (example ?? Object.values(examples)[0]?.value)
}

function checkExamples(id: OperationId, examples: Examples): string[] {
  return operations[id].statuses.flatMap((status) => {
    const names = [undefined, ...examples.names(id, status)]
    const mediaTypes = [undefined, ...examples.mediaTypes(id, status)]
    const found = names.flatMap((name) =>
      mediaTypes.flatMap((mediaType) =>
        checkExample(id, status, examples.find(id, status, { name, mediaType })),
      ),
    )
    return [...new Set(found)].map((problem) => `${id} ${status}${problem}`)
  })
}

function checkExample(
  id: OperationId,
  status: number,
  { headers, mediaType, body }: Example,
): string[] {
  const expected = responses[id][status]
  const parts = [
    { validator: expected?.headers, value: headers, what: 'headers' },
    {
      validator: mediaType === null ? null : expected?.body?.[mediaType],
      value: body,
      what: 'body',
    },
  ]
  return parts.flatMap(({ validator, value, what }) => {
    if (!validator || validator(value)) return []
    const [error] = validator.errors ?? []
    return [`: ${what}${error?.instancePath ?? ''} ${error?.message}`]
  })
}

const MAX_SHOWN_PROBLEMS = 10

function formatProblems(problems: string[]): string {
  const more =
    problems.length > MAX_SHOWN_PROBLEMS ? [`and ${problems.length - MAX_SHOWN_PROBLEMS} more`] : []
  return [
    'The mock cannot use the examples of openapi.yaml: they break the contract.',
    'Correct them. "muster lint" shows their lines. Problems:',
    ...problems.slice(0, MAX_SHOWN_PROBLEMS),
    ...more,
  ].join('\n')
}
