/** The contracts that `muster generate --resource` refuses, with the line and the remedy. */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generateResource } from '../../scripts/generate/resource/generate.ts'
import { contractWithVenues, withMoreFields } from './venues.ts'

let root: string
let openapi: string

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'resource-'))
  openapi = withMoreFields(await contractWithVenues('openapi.yaml'))
  await writeFile(join(root, 'asyncapi.yaml'), await contractWithVenues('asyncapi.yaml'))
})
afterAll(() => rm(root, { recursive: true }))

const RECORD = '\n    Venue:\n      type: object\n'
const CREATION = '\n    VenueCreate:\n'
const RATING = `        rating:
          type: number
          format: double
          nullable: true
`

interface Refusal {
  name: string
  /** Default: `venues`. */
  slug?: string
  /** The change is below this text. */
  after?: string
  change?: [from: string, to: string]
  /** The text of the reported line below `after`. By default the last line of `after`. */
  line?: string
  want: string
}

const REFUSALS: Refusal[] = [
  {
    name: 'a resource that is not in the contract',
    slug: 'venue',
    line: 'paths:',
    want: 'has no list of venue: add GET …/venue first, or write --resource venues',
  },
  {
    name: 'a create request without a body',
    after: '  /public/v1/venues:\n',
    change: [
      "      requestBody:\n        $ref: '#/components/requestBodies/VenueCreateBody'\n",
      '',
    ],
    line: 'get:',
    want: 'venues has no POST /public/v1/venues with a body: add it, or write the files by hand',
  },
  {
    name: 'a field that can be missing',
    after: RECORD,
    change: ['opens_at, rating,', 'opens_at,'],
    line: 'rating:',
    want: 'rating must be in required: a record has every field, with null for one without a value',
  },
  {
    name: 'a reference without records',
    after: RECORD,
    change: [RATING, '        rating:\n          type: string\n          format: uuid\n'],
    line: 'rating:',
    want: 'rating refers to no records of the contract: name it after their path, like task_id for /tasks/{task}',
  },
  {
    name: 'a field of several types',
    after: RECORD,
    change: [RATING, '        rating:\n          anyOf: [{ type: string }, { type: integer }]\n'],
    line: 'rating:',
    want: 'rating cannot be stored in a column: give it one type without allOf, anyOf and oneOf',
  },
  {
    name: 'a field without a value in a new record',
    after: CREATION,
    change: ['          default: true\n', ''],
    line: 'is_indoors:',
    want: 'is_indoors has no value when the create request has none: give it a default, require it, or add nullable',
  },
  {
    name: 'a field of the create request that the record lacks',
    after: CREATION,
    change: ['        rating:\n', '        stars:\n'],
    line: 'stars:',
    want: 'the record has no field stars: remove it here, or add it to the record',
  },
  {
    name: 'a list below another record',
    after: '\npaths:\n',
    change: [
      '  /public/v1/venues:\n',
      `  /public/v1/tasks/{task}/venues:
    parameters:
      - name: task
        in: path
        required: true
        description: The task.
        schema: { type: string, format: uuid }
`,
    ],
    line: 'get:',
    want: 'lists venues below another record: write its handler by hand, or replace it by GET …/venues with a filter such as filter[task_id]',
  },
  {
    name: 'a filter without a field',
    after: 'operationId: listVenues\n',
    change: ['name: filter[opens_after]', 'name: filter[tag]'],
    line: 'name: filter[tag]',
    want: 'filter[tag] is no plain comparison with a field of the record: generate without it, then add its condition to the listing',
  },
  {
    name: 'a filter that looks for a part of a text',
    after: 'operationId: listVenues\n',
    change: [
      'name: filter[status]\n',
      'name: filter[name]\n          x-filter: { match: contains, fields: [name] }\n',
    ],
    line: 'name: filter[name]',
    want: 'filter[name] is no plain comparison with a field of the record: generate without it, then add its condition to the listing',
  },
  {
    name: 'a search in another field than text',
    after: 'operationId: listVenues\n',
    change: [
      'name: filter[opens_after]\n',
      'name: filter[search]\n          x-filter: { match: contains, fields: [capacity], ignore_case: true }\n',
    ],
    line: 'name: filter[search]',
    want: 'filter[search] must name text fields of the record: x-filter: { match: contains, fields: [name], ignore_case: true }',
  },
  {
    name: 'a sort without a column',
    after: '\n    VenueSort:\n',
    change: ['enum: [name, -name,', 'enum: [rooms, -rooms, name, -name,'],
    want: 'rooms is no text, number or time of the record: remove it from the sorts, or add the field',
  },
]

test.each(REFUSALS)('refuses $name', async (refusal) => {
  const { slug = 'venues', after = '', change, line = '', want } = refusal
  const start = openapi.indexOf(after) + after.length
  const [from, to] = change ?? ['', '']
  expect(openapi.indexOf(from, start)).toBeGreaterThanOrEqual(0)
  const changed = openapi.slice(0, start) + openapi.slice(start).replace(from, () => to)
  await writeFile(join(root, 'openapi.yaml'), changed)
  const message = await generateResource(slug, root).catch((error) => error.message)
  const lineNumber = changed.slice(0, changed.indexOf(line, start - 1)).split('\n').length
  expect(message).toBe(`openapi.yaml:${lineNumber} ${want}`)
})

test.each([
  [
    'venue_id',
    /^openapi\.yaml:\d+ venue_id refers to venue itself, which cannot be generated: remove the field, generate, then add it by hand\. task_id in records\/payments\.ts shows how a reference is written$/,
  ],
  [
    'export_id',
    'records/removal-rules.ts removes exports, to which export_id refers: generate without it, then add it by hand',
  ],
])('refuses the reference %s, for which it cannot write the code', async (field, want) => {
  const name = 'records/removal-rules.ts'
  await mkdir(join(root, 'records'), { recursive: true })
  await cp(new URL(`../../${name}`, import.meta.url), join(root, name))
  const changed = openapi
    .replaceAll(/\brating\b/g, field)
    .replaceAll(/(?<=_id:\n +type: )number\n( +)format: double/g, 'string\n$1format: uuid')
  await writeFile(join(root, 'openapi.yaml'), changed)
  await expect(generateResource('venues', root)).rejects.toThrow(want)
})

test('refuses to overwrite a handler that is no longer the generated stub', async () => {
  await writeFile(join(root, 'openapi.yaml'), openapi)
  await mkdir(join(root, 'handlers'))
  await writeFile(join(root, 'handlers/getVenue.ts'), '// mine\n')
  await expect(generateResource('venues', root)).rejects.toThrow(
    'handlers/getVenue.ts exists: move it away, or write the rest of the resource by hand',
  )
})
