import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { ContractError, generate } from '../../scripts/generate/generate.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CONTRACT = fileURLToPath(new URL('contract', import.meta.url))

/** A tree of its own with a small contract, which is gone after the test. */
async function newTree() {
  const root = await mkdtemp(join(tmpdir(), 'generate-'))
  await cp(CONTRACT, root, { recursive: true })
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  const path = (file: string) => join(root, file)
  return {
    path,
    generate: () => generate({ root, check: false }),
    check: async () => (await generate({ root, check: true })).stale,
    write: async (file: string, text: string) => {
      await mkdir(join(path(file), '..'), { recursive: true })
      await writeFile(path(file), text)
    },
    remove: (file: string) => rm(path(file), { recursive: true }),
    replace: async (file: string, from: string, to: string) => {
      const text = await readFile(path(file), 'utf8')
      expect(text).toContain(from)
      await writeFile(path(file), text.replace(from, to))
    },
    outputs: async () => {
      const files = (await readdir(path('generated'))).sort()
      return Promise.all(
        files.map(async (file) => [file, await readFile(path(`generated/${file}`), 'utf8')]),
      )
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}

describe('generate', () => {
  test('generated/ of this tree is what its contract says', async () => {
    expect((await generate({ check: true })).stale).toEqual([])
  })

  test('the same contract gives the same bytes, and what has not changed is not written', async () => {
    await using tree = await newTree()
    const { written } = await tree.generate()
    const first = await tree.outputs()
    expect(first.map(([file]) => `generated/${file}`)).toEqual(
      written.filter((file) => file.startsWith('generated/')).sort(),
    )
    expect(await tree.generate()).toEqual({ written: [], removed: [], stale: [], orphans: [] })
    await tree.remove('generated')
    await tree.generate()
    expect(await tree.outputs()).toEqual(first)
  })

  test('a file that it no longer makes is removed', async () => {
    await using tree = await newTree()
    await tree.write('generated/old.ts', '')
    await tree.write('generated/folder/old.ts', '')
    expect((await tree.generate()).removed).toEqual(['generated/folder', 'generated/old.ts'])
    expect(await tree.check()).toEqual([])
  })

  test('check: lists a stale, a missing and a left-over file, and changes nothing', async () => {
    await using tree = await newTree()
    await tree.generate()
    await tree.write('generated/events.ts', 'changed')
    await tree.remove('generated/openapi.ts')
    await tree.write('generated/old.ts', '')
    const before = await tree.outputs()
    expect(await tree.check()).toEqual([
      'generated/events.ts is stale',
      'generated/openapi.ts is missing',
      'generated/old.ts is left over',
    ])
    expect(await tree.outputs()).toEqual(before)
  })

  test('check: an edit of the contract makes its outputs stale', async () => {
    await using tree = await newTree()
    await tree.generate()
    await tree.replace('openapi.yaml', 'summary: List notes', 'summary: List all notes')
    expect(await tree.check()).toContain('generated/operations.ts is stale')
  })
})

describe('generate: a contract that cannot be generated from', () => {
  const CASES = [
    {
      name: 'x-emits of an unknown event type',
      file: 'openapi.yaml',
      change: ['x-emits: [note.created]', 'x-emits: [note.made]'],
      want: 'openapi.yaml:39 operation createNote emits note.made, which asyncapi.yaml does not have',
    },
    {
      name: 'x-emits of an event type that is only sent when somebody asks',
      file: 'asyncapi.yaml',
      change: [
        '      summary: A note was created.',
        '      summary: A note was created.\n      x-subscribable: false',
      ],
      want: 'openapi.yaml:39 operation createNote emits note.created, which is x-subscribable: false in asyncapi.yaml',
    },
    {
      name: 'an unknown event type of the system',
      file: 'openapi.yaml',
      change: ['[note.expired]', '[note.expired, note.lost]'],
      want: 'openapi.yaml:6 the system emits note.lost',
    },
    {
      name: 'an event type that nothing emits',
      file: 'openapi.yaml',
      change: ['x-emitted-by-system: [note.expired]', ''],
      want: 'asyncapi.yaml:11 nothing emits note.expired',
    },
    {
      name: 'a reference that leads nowhere',
      file: 'openapi.yaml',
      change: [
        'data: { type: array, items: { $ref: "#/components/schemas/Note"',
        'data: { type: array, items: { $ref: "#/components/schemas/Nope"',
      ],
      want: 'openapi.yaml:35 refers to #/components/schemas/Nope, which does not exist',
    },
    {
      name: 'a reference out of the contract',
      file: 'asyncapi.yaml',
      change: ['./openapi.yaml#', './other.yaml#'],
      want: 'asyncapi.yaml:48 refers to ./other.yaml#/components/schemas/Note/properties/colour: refer to openapi.yaml or asyncapi.yaml only',
    },
    {
      name: 'a repeated operationId',
      file: 'openapi.yaml',
      change: ['operationId: getNote', 'operationId: listNotes'],
      want: 'openapi.yaml:66 repeats the operationId listNotes of line 9',
    },
    {
      name: 'an operation without an operationId',
      file: 'openapi.yaml',
      change: ['operationId: getNote', 'description: None.'],
      want: 'openapi.yaml:66 GET /notes/{note} has no operationId',
    },
    {
      name: 'broken YAML',
      file: 'openapi.yaml',
      change: ['  /notes:\n', '  /notes: [\n'],
      want: /^openapi\.yaml:\d+ is not YAML: /,
    },
    {
      name: 'a repeated key',
      file: 'openapi.yaml',
      change: ['    post:', '    get:'],
      want: 'openapi.yaml:36 is not YAML: Map keys must be unique',
    },
    {
      name: 'a nullable enum that does not list null',
      file: 'openapi.yaml',
      change: ['enum: [red, green, null], default: red', 'enum: [red, green], default: red'],
      want: 'openapi.yaml:104 is nullable, but its enum does not list null',
    },
    {
      name: 'objects combined in a response',
      file: 'openapi.yaml',
      change: ['          oneOf:', '          allOf:'],
      want: 'openapi.yaml:94 combines objects by allOf',
    },
    {
      name: 'a keyword that is none',
      file: 'openapi.yaml',
      change: ['minLength: 1', 'minLenght: 1'],
      want: /^openapi\.yaml:\d+ .*minLenght/,
    },
    {
      name: 'a module that there is not',
      file: 'openapi.yaml',
      change: [
        'paths:\n',
        'x-modules: [tasks]\ntags:\n  - name: Notes\n    x-module: notes\npaths:\n',
      ],
      want: 'openapi.yaml:10 x-module of Notes must be one of tasks, none',
    },
    {
      name: 'no asyncapi.yaml',
      file: 'asyncapi.yaml',
      change: null,
      want: /^asyncapi\.yaml:1 cannot be read in /,
    },
  ]
  for (const { name, file, change, want } of CASES) {
    test(name, async () => {
      await using tree = await newTree()
      if (change) await tree.replace(file, change[0] ?? '', change[1] ?? '')
      else await tree.remove(file)
      const error = await tree.generate().catch((error) => error)
      expect(error).toBeInstanceOf(ContractError)
      expect(error.message).toMatch(want)
      expect(await readdir(tree.path('.'))).not.toContain('generated')
    })
  }
})

describe('generated/operations.ts', () => {
  test('says of each operation what the contract says', async () => {
    await using tree = await newTree()
    await tree.generate()
    const { operations } = await import(tree.path('generated/operations.ts'))
    expect(Object.keys(operations)).toEqual(['listNotes', 'createNote', 'getNote', 'deleteNote'])
    expect(operations.listNotes).toMatchObject({
      method: 'get',
      path: '/notes',
      isPublic: false,
      access: 'read',
      rateLimit: { limit: 60, windowSeconds: 60 },
      query: {
        'page[number]': { type: 'integer', default: 1 },
        'filter[colour]': { type: 'list' },
        sort: { type: 'list' },
      },
      sorts: ['title', 'created_at'],
      filters: { colour: { list: true, options: ['red', 'green'] } },
      emits: [],
      success: 200,
    })
    expect(operations.createNote).toMatchObject({
      access: 'write',
      rateLimit: { limit: 5, windowSeconds: 1 },
      emits: ['note.created'],
      success: 201,
      etag: true,
      location: true,
      idempotent: true,
      ifMatch: false,
    })
    expect(operations.getNote).toMatchObject({
      isPublic: true,
      mediaTypes: ['text/plain'],
      sorts: [],
      filters: {},
    })
    expect(operations.deleteNote).toMatchObject({
      permission: 'finance',
      success: 204,
      statuses: [204],
      mediaTypes: [],
    })
  })
})

describe('generated/events.ts', () => {
  test('lists the event types in the order of asyncapi.yaml, with JSON Schema without references', async () => {
    await using tree = await newTree()
    await tree.generate()
    const { eventTypes } = await import(tree.path('generated/events.ts'))
    expect(Object.keys(eventTypes)).toEqual(['note.expired', 'note.created'])
    expect(eventTypes['note.expired']).toEqual({
      name: 'note.expired',
      summary: 'A note expired.',
      description: 'Sent when it does.',
      resourceType: 'note',
      dataSchema: {
        type: 'object',
        required: ['colour'],
        properties: { colour: { type: ['string', 'null'], enum: ['red', 'green', null] } },
      },
      example: { event_type: 'note.expired', resource: { type: 'note' }, data: { colour: null } },
    })
  })
})

describe('an event type that is not x-subscribable', () => {
  test('has a validator and a payload, and is no EventType', async () => {
    await using tree = await newTree()
    await tree.replace(
      'asyncapi.yaml',
      '      summary: A note expired.',
      '      summary: A note expired.\n      x-subscribable: false',
    )
    await tree.replace('openapi.yaml', 'x-emitted-by-system: [note.expired]', '')
    await tree.generate()
    const { eventTypes } = await import(tree.path('generated/events.ts'))
    expect(Object.keys(eventTypes)).toEqual(['note.created'])
    const { events } = await import(tree.path('generated/validators.js'))
    expect(Object.keys(events)).toEqual(['note.expired', 'note.created'])
    const types = await readFile(tree.path('generated/asyncapi.ts'), 'utf8')
    expect(types).toMatch(/export type EventType =\s+\|? ?'note.created'\n/)
    expect(types).toContain("'note.expired': NoteExpired")
  })
})

describe('generated/validators.js', () => {
  const NOTE = { title: 'a', colour: null, due_at: null, owner: null }
  const CASES = [
    { what: 'query', given: {}, want: true },
    { what: 'query', given: { 'page[number]': 0 }, want: false },
    { what: 'query', given: { 'page[number]': '1' }, want: false },
    { what: 'query', given: { 'filter[colour]': ['red'], sort: ['-title'] }, want: true },
    { what: 'query', given: { 'filter[colour]': ['blue'] }, want: false },
    { what: 'query', given: { 'filter[other]': 'x' }, want: false },
    { what: 'path', given: { note: '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81' }, want: true },
    { what: 'path', given: { note: '1' }, want: false },
    { what: 'request headers', given: { 'idempotency-key': 'abc', host: 'x' }, want: true },
    { what: 'request headers', given: { 'idempotency-key': 'abcd' }, want: false },
    { what: 'body', given: { title: 'a' }, want: true },
    { what: 'body', given: { title: 'a', colour: null }, want: true },
    { what: 'body', given: { title: 'a', other: 1 }, want: false },
    { what: 'response', given: NOTE, want: true },
    {
      what: 'response',
      given: { ...NOTE, colour: 'red', due_at: '2026-03-02T09:30:00.000Z', owner: { name: 'Ada' } },
      want: true,
    },
    { what: 'response', given: { ...NOTE, due_at: 'tomorrow' }, want: false },
    { what: 'response', given: { ...NOTE, password: 'x' }, want: false },
    { what: 'response', given: { ...NOTE, owner: { name: 'Ada', password: 'x' } }, want: false },
    { what: 'response headers', given: { etag: '"x"', location: '/', date: 'x' }, want: true },
    { what: 'response headers', given: { etag: '"x"', location: '/', 'x-count': '7' }, want: true },
    { what: 'response headers', given: { etag: '"x"', location: '/', 'x-count': 7 }, want: true },
    {
      what: 'response headers',
      given: { etag: '"x"', location: '/', 'x-count': 'many' },
      want: false,
    },
    { what: 'response headers', given: { etag: '"x"' }, want: false },
    {
      what: 'event',
      given: { event_type: 'note.created', resource: { type: 'note' }, data: [] },
      want: true,
    },
    {
      what: 'event',
      given: { event_type: 'note.created', resource: { type: 'note' }, data: [1] },
      want: false,
    },
    {
      what: 'event',
      given: { event_type: 'note.created', resource: { type: 'note', title: 'a' }, data: [] },
      want: false,
    },
    {
      what: 'event',
      given: { event_type: 'note.expired', resource: { type: 'note' }, data: [] },
      want: false,
    },
    { what: 'event headers', given: { 'x-signature': '0f', host: 'x' }, want: true },
    { what: 'event headers', given: { host: 'x' }, want: false },
  ]

  test('accept what the contract accepts, and nothing else', async () => {
    await using tree = await newTree()
    await tree.generate()
    const { params, bodies, responses, events } = await import(tree.path('generated/validators.js'))
    const validators: Record<string, (data: unknown) => boolean> = {
      query: params.listNotes.query,
      path: params.getNote.path,
      'request headers': params.createNote.headers.validator,
      body: bodies.createNote,
      response: responses.createNote[201].body['application/json'],
      'response headers': responses.createNote[201].headers,
      event: events['note.created'].payload,
      'event headers': events['note.created'].headers,
    }
    for (const { what, given, want } of CASES) {
      expect({ what, given, valid: validators[what]?.(structuredClone(given)) }).toEqual({
        what,
        given,
        valid: want,
      })
    }
    expect(params.createNote.headers.names).toEqual(['Idempotency-Key'])
    expect(params.listNotes.headers).toBeNull()
    expect(bodies.listNotes).toBeUndefined()
    expect(responses.getNote[200].body).toEqual({ 'text/plain': null })
    expect(responses.deleteNote[204]).toEqual({ headers: null, body: null })
  })

  test('set defaults in what we receive, never in what we send', async () => {
    await using tree = await newTree()
    await tree.replace(
      'openapi.yaml',
      'title: { type: string }',
      'title: { type: string, default: none }',
    )
    await tree.generate()
    const { params, bodies, responses } = await import(tree.path('generated/validators.js'))
    const query = {}
    const body = { title: 'a' }
    expect([params.listNotes.query(query), query]).toEqual([true, { 'page[number]': 1 }])
    expect([bodies.createNote(body), body]).toEqual([true, { title: 'a', colour: 'red' }])
    const response = responses.createNote[201].body['application/json']
    expect(response({ colour: null, due_at: null, owner: null })).toBe(false)
    expect(response.errors).toMatchObject([
      { keyword: 'required', instancePath: '', params: { missingProperty: 'title' } },
    ])
  })

  test('openapi.yaml and asyncapi.yaml of this tree name the same event types', async () => {
    const { eventTypes } = await import('../../generated/events.ts')
    const { components } = JSON.parse(await readFile(join(ROOT, 'generated/openapi.json'), 'utf8'))
    expect(components.schemas.EventType.enum.toSorted()).toEqual(Object.keys(eventTypes).sort())
  })

  test("every example of this tree's events is valid", async () => {
    const { eventTypes } = await import('../../generated/events.ts')
    const { events } = await import('../../generated/validators.js')
    for (const { name, example } of Object.values(eventTypes)) {
      expect({ name, valid: events[name].payload(example) }).toEqual({ name, valid: true })
    }
  })
})

describe('generated/handlers.ts', () => {
  const CALL = `import type { Body, OperationId, PathParams, QueryParams, SuccessBody } from '../generated/operations.ts'
export interface Call<Id extends OperationId> { path: PathParams<Id>; query: QueryParams<Id>; input: Body<Id> }
export type Handler<Id extends OperationId> = (call: Call<Id>) => Promise<SuccessBody<Id>>
export declare function notImplemented<Id extends OperationId>(id: Id): Handler<Id>
`
  const BODIES: Record<string, string> = {
    listNotes:
      'const page: number = call.query["page[number]"]; const sort: ("title" | "-title" | "created_at" | "-created_at")[] | undefined = call.query.sort; void [page, sort]; return { data: [] }',
    createNote:
      'return { title: call.input.title, colour: call.input.colour, due_at: null, owner: null }',
    getNote: 'return { headers: {}, stream: Readable.from(call.path.note) }',
    deleteNote: 'const none: never = call.input; void none',
  }
  const handler = (name: string, body: string, operationId = name) =>
    `import { Readable } from 'node:stream'\nimport type { SuccessBody } from '../generated/operations.ts'\nimport type { Call } from './call.ts'\nexport async function ${name}(call: Call<'${operationId}'>): Promise<SuccessBody<'${operationId}'>> { void Readable; ${body} }\n`

  async function newTreeWithHandlers() {
    const tree = await newTree()
    await tree.write('handlers/call.ts', CALL)
    for (const [name, body] of Object.entries(BODIES))
      await tree.write(`handlers/${name}.ts`, handler(name, body))
    await tree.generate()
    return tree
  }

  const CASES: {
    name: string
    change: (tree: Awaited<ReturnType<typeof newTree>>) => Promise<unknown>
    want: (string | RegExp)[]
  }[] = [
    { name: 'handlers that are complete', change: async () => {}, want: [] },
    {
      name: 'a handler that is missing',
      change: (tree) => tree.remove('handlers/getNote.ts'),
      want: [/^generated\/handlers\.ts: Cannot find module '\.\.\/handlers\/getNote\.ts'/],
    },
    {
      name: 'the stand-in for it',
      change: (tree) => tree.remove('handlers/getNote.ts').then(tree.generate),
      want: [],
    },
    {
      name: 'a handler whose operation is gone',
      change: (tree) =>
        tree
          .write('handlers/printNote.ts', 'export async function printNote(): Promise<void> {}')
          .then(tree.generate),
      want: [/^generated\/handlers\.ts: .*'printNote' does not exist in type 'Handlers'/],
    },
    {
      name: 'a handler with the body of another',
      change: (tree) =>
        tree.write('handlers/getNote.ts', handler('getNote', 'return { data: [] }')),
      want: [/^handlers\/getNote\.ts: /],
    },
    {
      name: 'a handler of another operation',
      change: (tree) =>
        tree.write('handlers/getNote.ts', handler('getNote', 'return { data: [] }', 'listNotes')),
      want: [
        /^generated\/handlers\.ts: Type '\(call: Call<"listNotes">\) => Promise<.*>' is not assignable/,
      ],
    },
    {
      name: 'an operation that a handler still has after it was renamed',
      change: (tree) =>
        tree
          .replace('openapi.yaml', 'operationId: getNote', 'operationId: readNote')
          .then(tree.generate),
      want: [
        /'getNote' does not exist in type 'Handlers'/,
        /^handlers\/getNote\.ts: Type '"getNote"' does not satisfy/,
      ],
    },
  ]
  for (const { name, change, want } of CASES) {
    test(`compiled with ${name}`, async () => {
      await using tree = await newTreeWithHandlers()
      await change(tree)
      const errors = compile(tree.path('.'))
      if (want.length === 0) expect(errors).toEqual([])
      for (const line of want) expect(errors).toContainEqual(expect.stringMatching(line))
    })
  }
})

const libraries = new Map<string, ts.SourceFile | undefined>()

/** The errors of generated/handlers.ts and all that it imports, as `file: message`. */
function compile(root: string): string[] {
  const { options } = ts.convertCompilerOptionsFromJson(
    ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile).config.compilerOptions,
    root,
  )
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile
  host.getSourceFile = (file, version) => {
    if (!file.includes('/node_modules/')) return read(file, version)
    if (!libraries.has(file)) libraries.set(file, read(file, version))
    return libraries.get(file)
  }
  const program = ts.createProgram([join(root, 'generated/handlers.ts')], options, host)
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const place = file ? file.fileName.slice(root.length).replace(/^\//, '') : ''
    return `${place}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
}
