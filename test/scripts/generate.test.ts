import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { ContractError, generate } from '../../scripts/generate/generate.ts'
import { formatRemark } from '../../scripts/report/result.ts'
import { newContractTree } from './contract-tree.ts'

describe('generate', () => {
  test('generated/ of this repository is fresh', async () => {
    expect(await generate({ check: true })).toMatchObject({ stale: [], missingColumns: [] })
  })

  test('generates the same files again, and does not write unchanged ones', async () => {
    await using tree = await newContractTree()
    const { written } = await tree.generate()
    const first = await tree.outputs()
    expect(first.map(([file]) => `generated/${file}`)).toEqual(
      written.filter((file) => file.startsWith('generated/')).sort(),
    )
    expect(await tree.generate()).toEqual({
      written: [],
      removed: [],
      stale: [],
      orphans: [],
      missingColumns: [],
    })
    await tree.remove('generated')
    await tree.generate()
    expect(await tree.outputs()).toEqual(first)
  })

  test('removes files that it no longer generates', async () => {
    await using tree = await newContractTree()
    await tree.write('generated/old.ts', '')
    await tree.write('generated/folder/old.ts', '')
    expect((await tree.generate()).removed).toEqual(['generated/folder', 'generated/old.ts'])
    expect(await tree.check()).toEqual([])
  })

  test('check lists stale, missing and left-over files, and writes nothing', async () => {
    await using tree = await newContractTree()
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

  test('check lists the files that an edit of the contract makes stale', async () => {
    await using tree = await newContractTree()
    await tree.generate()
    await tree.replace('openapi.yaml', 'summary: List notes', 'summary: List all notes')
    expect(await tree.check()).toContain('generated/operations.ts is stale')
  })

  test('names each filter and sort that the database has no column for', async () => {
    await using tree = await newContractTree()
    const data = 'data: { type: array, items: { $ref: "#/components/schemas/Note" } }'
    await tree.replace('openapi.yaml', data, `${data}\n                  meta: { type: object }`)
    const missingColumns = async () =>
      (await generate({ root: tree.root, check: true })).missingColumns
    expect(await missingColumns()).toEqual([])
    const columns = { id: 'char(36)', title: 'TEXT' }
    await tree.write('records/schema.sqlite.json', JSON.stringify({ notes: { columns } }))
    const remedy = 'add it in a migration and run "npm run update-schema"'
    const sort = `openapi.yaml:25 sort=created_at of listNotes has no column notes.created_at: ${remedy}`
    expect((await missingColumns()).map(formatRemark)).toEqual([
      `openapi.yaml:16 filter[colour] of listNotes has no column notes.colour: ${remedy}, or write the filter in records/notes.ts`,
      sort,
    ])
    await tree.write('records/notes.ts', 'const filters = { colour: (value) => byColour(value) }')
    expect((await missingColumns()).map(formatRemark)).toEqual([sort])
  })
})

describe('generate: refuses a faulty contract', () => {
  const CASES = [
    {
      name: 'x-emits of an unknown event type',
      file: 'openapi.yaml',
      change: ['x-emits: [note.created]', 'x-emits: [note.made]'],
      want: 'openapi.yaml:39 operation createNote emits note.made, which asyncapi.yaml does not have',
    },
    {
      name: 'x-emits of an event type that is sent on request only',
      file: 'asyncapi.yaml',
      change: [
        '      summary: A note was created.',
        '      summary: A note was created.\n      x-subscribable: false',
      ],
      want: 'openapi.yaml:39 operation createNote emits note.created, which is x-subscribable: false in asyncapi.yaml',
    },
    {
      name: 'x-emitted-by-system with an unknown event type',
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
      name: 'a reference without a target',
      file: 'openapi.yaml',
      change: [
        'data: { type: array, items: { $ref: "#/components/schemas/Note"',
        'data: { type: array, items: { $ref: "#/components/schemas/Nope"',
      ],
      want: 'openapi.yaml:35 refers to #/components/schemas/Nope, which does not exist',
    },
    {
      name: 'a reference to another file',
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
      name: 'a response that combines objects by allOf',
      file: 'openapi.yaml',
      change: ['          oneOf:', '          allOf:'],
      want: 'openapi.yaml:94 combines objects by allOf',
    },
    {
      name: 'an unknown keyword',
      file: 'openapi.yaml',
      change: ['minLength: 1', 'minLenght: 1'],
      want: /^openapi\.yaml:\d+ .*minLenght/,
    },
    {
      name: 'an unknown module',
      file: 'openapi.yaml',
      change: [
        'paths:\n',
        'x-modules: [finance]\ntags:\n  - name: Notes\n    x-module: notes\npaths:\n',
      ],
      want: 'openapi.yaml:10 x-module of Notes must be one of finance, none',
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
      await using tree = await newContractTree()
      if (change) await tree.replace(file, change[0] ?? '', change[1] ?? '')
      else await tree.remove(file)
      const error = await tree.generate().catch((error) => error)
      expect(error).toBeInstanceOf(ContractError)
      expect(error.message).toMatch(want)
      expect(await readdir(tree.root)).not.toContain('generated')
    })
  }
})
