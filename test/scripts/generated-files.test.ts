import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import openapi from '../../generated/openapi.json' with { type: 'json' }
import { events } from '../../generated/validators.js'
import { newContractTree } from './contract-tree.ts'

describe('generated/operations.ts', () => {
  test('has a row for each operation', async () => {
    await using tree = await newContractTree()
    await tree.generate()
    const { operations } = await import(tree.path('generated/operations.ts'))
    expect(Object.keys(operations)).toEqual(['listNotes', 'createNote', 'getNote', 'deleteNote'])
    expect(operations.listNotes).toMatchObject({
      method: 'get',
      path: '/notes',
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
  test('lists the event types in the order of asyncapi.yaml, with their JSON Schemas', async () => {
    await using tree = await newContractTree()
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
  test('has a validator and a payload type, but is no EventType', async () => {
    await using tree = await newContractTree()
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
    { what: 'query', input: {}, want: true },
    { what: 'query', input: { 'page[number]': 0 }, want: false },
    { what: 'query', input: { 'page[number]': '1' }, want: false },
    { what: 'query', input: { 'filter[colour]': ['red'], sort: ['-title'] }, want: true },
    { what: 'query', input: { 'filter[colour]': ['blue'] }, want: false },
    { what: 'query', input: { 'filter[other]': 'x' }, want: false },
    { what: 'path', input: { note: '019cade2-11c0-7c41-8a15-2b6f9d3e4c81' }, want: true },
    { what: 'path', input: { note: '1' }, want: false },
    { what: 'request headers', input: { 'idempotency-key': 'abc', host: 'x' }, want: true },
    { what: 'request headers', input: { 'idempotency-key': 'abcd' }, want: false },
    { what: 'body', input: { title: 'a' }, want: true },
    { what: 'body', input: { title: 'a', colour: null }, want: true },
    { what: 'body', input: { title: 'a', other: 1 }, want: false },
    { what: 'response', input: NOTE, want: true },
    {
      what: 'response',
      input: { ...NOTE, colour: 'red', due_at: '2026-03-02T09:30:00.000Z', owner: { name: 'Ada' } },
      want: true,
    },
    { what: 'response', input: { ...NOTE, due_at: 'tomorrow' }, want: false },
    { what: 'response', input: { ...NOTE, password: 'x' }, want: false },
    { what: 'response', input: { ...NOTE, owner: { name: 'Ada', password: 'x' } }, want: false },
    { what: 'response headers', input: { etag: '"x"', location: '/', date: 'x' }, want: true },
    { what: 'response headers', input: { etag: '"x"', location: '/', 'x-count': '7' }, want: true },
    { what: 'response headers', input: { etag: '"x"', location: '/', 'x-count': 7 }, want: true },
    {
      what: 'response headers',
      input: { etag: '"x"', location: '/', 'x-count': 'many' },
      want: false,
    },
    { what: 'response headers', input: { etag: '"x"' }, want: false },
    {
      what: 'event',
      input: { event_type: 'note.created', resource: { type: 'note' }, data: [] },
      want: true,
    },
    {
      what: 'event',
      input: { event_type: 'note.created', resource: { type: 'note' }, data: [1] },
      want: false,
    },
    {
      what: 'event',
      input: { event_type: 'note.created', resource: { type: 'note', title: 'a' }, data: [] },
      want: false,
    },
    {
      what: 'event',
      input: { event_type: 'note.expired', resource: { type: 'note' }, data: [] },
      want: false,
    },
    { what: 'event headers', input: { 'x-signature': '0f', host: 'x' }, want: true },
    { what: 'event headers', input: { host: 'x' }, want: false },
  ]

  test('accept what the contract accepts, and refuse all else', async () => {
    await using tree = await newContractTree()
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
    for (const { what, input, want } of CASES) {
      expect({ what, input, valid: validators[what]?.(structuredClone(input)) }).toEqual({
        what,
        input,
        valid: want,
      })
    }
  })

  test('are null for headers and bodies that an operation does not have', async () => {
    await using tree = await newContractTree()
    await tree.generate()
    const { params, bodies, responses } = await import(tree.path('generated/validators.js'))
    expect(params.createNote.headers.names).toEqual(['Idempotency-Key'])
    expect(params.listNotes.headers).toBeNull()
    expect(bodies.listNotes).toBeUndefined()
    expect(responses.getNote[200].body).toEqual({ 'text/plain': null })
    expect(responses.deleteNote[204]).toEqual({ headers: null, body: null })
  })

  test('set defaults in requests, never in responses', async () => {
    await using tree = await newContractTree()
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
})

describe('the generated files of this repository', () => {
  test('openapi.yaml and asyncapi.yaml name the same event types', () => {
    const inOpenapi = openapi.components.schemas.EventTypeName.enum
    expect(inOpenapi.toSorted()).toEqual(Object.keys(eventTypes).sort())
  })

  test('validators.js has one function for equal schemas, and for a parameter of all lists', async () => {
    const code = await readFile(new URL('../../generated/validators.js', import.meta.url), 'utf8')
    const schemas = [...code.matchAll(/^const schema\d+ = (.*);$/gm)].map(([, schema]) => schema)
    expect(schemas.length).toBeGreaterThan(100)
    expect(schemas.filter((schema, index) => schemas.indexOf(schema) !== index)).toEqual([])
    const { maximum } = openapi.components.parameters.PageNumber.schema
    expect(code.match(new RegExp(`> ${maximum} `, 'g'))).toHaveLength(1)
  })

  test.each(Object.values(eventTypes))('the example of $name is valid', ({ name, example }) => {
    const validator = events[name].payload
    expect([validator(example), validator.errors]).toEqual([true, null])
  })
})
