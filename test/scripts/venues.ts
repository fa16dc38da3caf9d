/** The resource of docs/new-resource.md, and more fields for it: one for each kind of column. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT, replaceOnce } from '../repository.ts'
import type { Tree } from './tree.ts'

interface Block {
  text: string
  /** The line of the contract after which the page inserts the block. */
  after: string
}

/** The blocks of docs/new-resource.md for one of the two contracts. */
async function readBlocks(file: string): Promise<Block[]> {
  const page = await readFile(join(ROOT, 'docs/new-resource.md'), 'utf8')
  const found = [...page.matchAll(/^~~~yaml (\S+) after `(.*)`\n([\s\S]*?)\n~~~$/gm)]
  return found
    .filter(([, target]) => target === file)
    .map(([, , after = '', text = '']) => ({ text, after }))
}

function withBlocks(contract: string, blocks: Block[]): string {
  let changed = contract
  for (const { text, after } of blocks)
    changed = replaceOnce(changed, `\n${after}\n`, `\n${after}\n${text}\n`)
  return changed
}

/** A contract of this repository with the resource of docs/new-resource.md. */
export async function contractWithVenues(file: string): Promise<string> {
  return withBlocks(await readFile(join(ROOT, file), 'utf8'), await readBlocks(file))
}

/** Adds the same resource by another name. Bookings refer to a venue and a task, and have a
 *  search. */
export async function withBookings(file: string, contract: string): Promise<string> {
  const venues = await readBlocks(file)
  const bookings = venues.map(({ text, after }) => ({ text: toBookings(text), after }))
  return withBlocks(contract, bookings)
}

function toBookings(venues: string): string {
  return venues
    .replaceAll('venue', 'booking')
    .replaceAll('Venue', 'Booking')
    .replaceAll('required: [id, name, ', 'required: [id, name, venue_id, task_id, ')
    .replaceAll('required: [name]', 'required: [name, venue_id]')
    .replaceAll(
      /^( +)capacity: 240\n/gm,
      (line, spaces) => `${line}${spaces}${EXAMPLE_IDS.join(`\n${spaces}`)}\n`,
    )
    .replaceAll(/^ {8}capacity:\n/gm, (line) => REFERENCES + line)
    .replace(/^ {8}- name: sort\n/m, (line) => FILTERS + line)
}

const EXAMPLE_IDS = ['venue_id: 019cade2-11c0-7e64-9b0a-4d2f8c6e1a37', 'task_id: null']

const REFERENCES = `        venue_id:
          type: string
          format: uuid
          description: The venue.
        task_id:
          type: string
          format: uuid
          nullable: true
          description: The task that the booking is for.
`

const FILTERS = `        - name: filter[venue_id]
          in: query
          description: Only bookings of this venue.
          x-filter: { match: equals, fields: [venue_id] }
          schema:
            type: string
            format: uuid
        - name: filter[task_id]
          in: query
          description: Only bookings for this task.
          x-filter: { match: equals, fields: [task_id] }
          schema:
            type: string
            format: uuid
        - name: filter[search]
          in: query
          description: Only bookings whose name contains this text, ignoring case.
          x-filter: { match: contains, fields: [name], ignore_case: true }
          schema:
            type: string
            minLength: 1
            pattern: '^[^\\x00]*$'
            maxLength: 200
`

/** Adds the resource of docs/new-resource.md to the contracts of the tree. */
export async function addVenues(tree: Tree): Promise<void> {
  for (const file of ['openapi.yaml', 'asyncapi.yaml'])
    await tree.write(file, await contractWithVenues(file))
}

const FIELDS = `        opens_at:
          type: string
          format: date-time
          nullable: true
          description: When the venue opens.
        rating:
          type: number
          format: double
          nullable: true
          description: How guests rate the venue.
          minimum: 0
          maximum: 5
        is_indoors:
          type: boolean
          description: Whether the venue has a roof.
          default: true
        rooms:
          type: array
          description: The names of the rooms.
          maxItems: 20
          x-default: []
          items:
            type: string
            minLength: 1
            maxLength: 100
`
/** The fields of a record and of an update, which have no defaults. */
const BARE_FIELDS = FIELDS.replace(/^ +(x-)?default: .*\n/gm, '')

const EXAMPLE = `opens_at: '2026-06-01T08:00:00.000Z'
rating: 4.5
is_indoors: false
rooms: [Hall, Foyer]
`

const OPENS_AFTER = `        - name: filter[opens_after]
          in: query
          description: Only venues that open after this time.
          schema:
            type: string
            format: date-time
          example: '2026-03-01T00:00:00Z'
`

/** Adds `FIELDS` to venues, with a sort and a filter by `opens_at`. */
export function withMoreFields(openapi: string): string {
  const indented = (text: string, spaces: number): string =>
    text.replace(/^(?=.)/gm, ' '.repeat(spaces))
  return openapi
    .replaceAll(/^( +)capacity: 240\n/gm, (line, spaces) => line + indented(EXAMPLE, spaces.length))
    .replace(
      'required: [id, name, capacity,',
      'required: [id, name, capacity, opens_at, rating, is_indoors, rooms,',
    )
    .replace(
      /\n {4}Venue:\n {6}type: object\n[\s\S]*?(?= {8}status:)/,
      (schema) => schema + BARE_FIELDS,
    )
    .replace(/\n {4}VenueCreate:\n[\s\S]*? {6}properties:\n/, (schema) => schema + FIELDS)
    .replace(/\n {4}VenueUpdate:\n[\s\S]*? {6}properties:\n/, (schema) => schema + BARE_FIELDS)
    .replace('allowed_sorts: [name, created_at]', 'allowed_sorts: [name, opens_at, created_at]')
    .replace('enum: [name, -name,', 'enum: [name, -name, opens_at, -opens_at,')
    .replace('NAME_DESCENDING,', 'NAME_DESCENDING, OPENS_AT_ASCENDING, OPENS_AT_DESCENDING,')
    .replace('        - By `name`, descending.\n        - By `created_at`, ascending.\n', (lines) =>
      lines.replace(
        '        - By `created_at`',
        '        - By `opens_at`, ascending.\n        - By `opens_at`, descending.\n        - By `created_at`',
      ),
    )
    .replace(
      /operationId: listVenues\n[\s\S]*?(?= {8}- name: sort)/,
      (operation) => operation + OPENS_AFTER,
    )
}
