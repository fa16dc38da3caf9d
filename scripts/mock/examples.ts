/** The examples of the responses in openapi.yaml. */
import { Refused } from '../../errors.ts'
import { type OperationId, operations } from '../../generated/operations.ts'
import { responses } from '../../generated/validators.js'
import type { Contract } from '../model/contract.ts'
import { dereference } from '../model/references.ts'
import { valueAt } from '../model/source.ts'

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

interface DeclaredHeader {
  example?: unknown
  required?: boolean
}

interface DeclaredMedia {
  example?: unknown
  examples?: Record<string, unknown>
}

interface DeclaredResponse {
  headers?: Record<string, unknown>
  content?: Record<string, DeclaredMedia>
}

/** Throws `Refused` if an example breaks the contract. */
export function readExamples(contract: Contract): Examples {
  const examples = findExamples(contract)
  const problems = (Object.keys(operations) as OperationId[]).flatMap((id) =>
    checkExamples(id, examples),
  )
  if (problems.length > 0) throw new Refused(formatProblems(problems))
  return examples
}

function findExamples({ sources, openapi: source }: Contract): Examples {
  const follow = <T>(value: unknown): T =>
    dereference(sources, { source, path: [], value }).value as T
  const responseOf = (id: OperationId, status: number): DeclaredResponse => {
    const { path, method } = operations[id]
    return follow(valueAt(source.root, ['paths', path, method, 'responses', status]) ?? {})
  }
  const contentOf = (id: OperationId, status: number) => responseOf(id, status).content ?? {}
  return {
    mediaTypes: (id, status) => Object.keys(contentOf(id, status)),
    names: (id, status) =>
      Object.values(contentOf(id, status)).flatMap(({ examples = {} }) => Object.keys(examples)),
    find(id, status, { name, mediaType = Object.keys(contentOf(id, status))[0] } = {}) {
      // Only required headers: an optional one, for example Idempotent-Replayed, would be wrong in
      // most responses.
      const headers = Object.entries(responseOf(id, status).headers ?? {})
        .map(([header, value]) => [header, follow<DeclaredHeader>(value)] as const)
        .filter(([, { required }]) => required)
        .map(([header, { example }]) => [header.toLowerCase(), String(example ?? '')])
      const { example, examples = {} } = contentOf(id, status)[mediaType ?? ''] ?? {}
      // If `examples` has no entry `name`: `example`, or else the first of `examples`.
      const named = examples[name ?? ''] ?? (example === undefined && Object.values(examples)[0])
      return {
        headers: Object.fromEntries(headers),
        mediaType: mediaType ?? null,
        body: named ? follow<{ value?: unknown }>(named).value : example,
      }
    },
  }
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
