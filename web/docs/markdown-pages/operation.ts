import { STATUS_CODES } from 'node:http'
import type {
  Operation,
  OperationResponse,
  Parameter,
  ResponseHeader,
} from '../../../scripts/model/operations.ts'
import type { ApiOperation } from '../api.ts'
import type { PageContext } from '../page.ts'
import { listFacts, PARAMETER_SECTIONS } from '../pages/operation.ts'
import { COMMON_HEADERS } from '../pages/reference.ts'
import { deprecationNote } from '../parts.ts'
import { codeSamples } from '../samples.ts'
import { formatType } from '../schema.ts'
import { describeField, fieldLines } from './fields.ts'
import {
  codeBlock,
  eventLines,
  exampleBlock,
  inlineText,
  joinBlocks,
  listItem,
  section,
} from './text.ts'

export function operationMarkdown(context: PageContext, operation: ApiOperation): string {
  const { summary, description, method, path, responses, events } = operation
  const [sample] = codeSamples(operation, context.options.baseUrl, context.api)
  return joinBlocks([
    `# ${summary}`,
    `\`${method} ${path}\``,
    inlineText(deprecationNote(operation.deprecation)),
    description,
    listFacts(context, operation)
      .map(([label, value]) => listItem(`${inlineText(label)}: ${inlineText(value)}`))
      .join('\n'),
    section('Emits', eventLines(context, events)),
    ...Object.entries(PARAMETER_SECTIONS).map(([place, title]) => {
      const parameters = operation.parameters.filter((parameter) => parameter.in === place)
      return section(title, fieldItems(context, parameters))
    }),
    bodySection(context, operation),
    sample && section('Request', codeBlock(sample.code, 'sh')),
    '## Responses',
    ...responses.map((response) => responseBlock(context, response)),
  ])
}

function fieldItems(context: PageContext, fields: (Parameter | ResponseHeader)[]): string {
  return fields
    .map(({ name, schema, required, description }) =>
      listItem(
        describeField(context, { name, schema: schema.value, isRequired: required, description }),
      ),
    )
    .join('\n')
}

function bodySection(context: PageContext, { body }: Operation): string | undefined {
  if (!body) return undefined
  return section(
    'Body',
    `With \`Content-Type: ${body.mediaType}\`.`,
    fieldLines(context, body.schema.value).join('\n'),
  )
}

function responseBlock(context: PageContext, response: OperationResponse): string {
  const { status, description, headers, content } = response
  const outputContext = { ...context, isOutput: true }
  // Nearly all responses have `COMMON_HEADERS`. Only successful responses list
  // these headers.
  const shownHeaders = Object.values(headers).filter(
    ({ name }) => status < 300 || !COMMON_HEADERS.test(name),
  )
  const media = Object.values(content)
  const [first] = media
  const types = media.map(
    ({ mediaType, schema }) =>
      `\`${mediaType}\`: ${inlineText(formatType(outputContext, schema.value))}`,
  )
  return joinBlocks([
    `### ${status} ${STATUS_CODES[status]}`,
    description,
    types.join('\n'),
    first && fieldLines(outputContext, first.schema.value).join('\n'),
    ...media.map(({ example }) => exampleBlock(example)),
    shownHeaders.length > 0 && 'Headers:',
    fieldItems(outputContext, shownHeaders),
  ])
}
