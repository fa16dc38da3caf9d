/** Documents that the commands refuse, or take with a warning. */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { diff } from '../../scripts/diff/diff.ts'
import { init } from '../../scripts/generate/init.ts'
import { folder, newFolder, PETSTORE } from './document-folder.ts'
import { FAULTY, INCOMPLETE, LIBRARY, MEMBERS, UNSUPPORTED } from './documents.ts'
import { newMuster } from './muster.ts'

/** The lines about the document, without the column and the rule that lint adds. */
function problemLines(output: string): string[] {
  const lines = output.split('\n').filter((line) => line.startsWith('openapi'))
  return lines.map((line) => line.replace(/^([^:]+:\d+)(:\d+ \S+ —)?/, '$1'))
}

describe('a document that is not supported', () => {
  it.each([
    ['constructs', UNSUPPORTED],
    ['values', FAULTY],
  ])('is refused for its %s with every reason, file, line and remedy', async (name, document) => {
    const root = await newFolder(`refused-${name}`, { 'openapi.yaml': document.text })
    await using muster = await newMuster()
    for (const args of [['lint'], ['generate'], ['diff'], ['mock'], ['contract', '--mock']]) {
      const { status, stdout, stderr } = await muster.run([...args, '--root', root])
      expect([args, status]).toEqual([args, 1])
      expect([args, problemLines(stdout + stderr)]).toEqual([args, document.reasons])
    }
  })

  it.each([
    [
      'an empty security requirement',
      { security: [null] },
      'security has an empty entry: name a scheme, or write {} for access without one',
    ],
    [
      'an empty schema',
      { components: { schemas: { Pet: null } } },
      'is no schema: write one, for example {} for any value',
    ],
    [
      'an empty part of allOf',
      { components: { schemas: { Pet: { allOf: [null] } } } },
      'is no schema: write one, for example {} for any value',
    ],
    [
      'schemas that refer only to each other',
      {
        components: {
          schemas: {
            Pet: { $ref: '#/components/schemas/Animal' },
            Animal: { $ref: '#/components/schemas/Pet' },
          },
        },
      },
      '#/components/schemas/Animal refers back to itself: write a schema in place of a reference',
    ],
    [
      'a faulty schema of a header with x-',
      {
        components: {
          headers: { 'x-count': { schema: { type: 'integer', minimum: 'three' } } },
        },
      },
      'minimum must be a number',
    ],
    [
      'an empty security scheme',
      { components: { securitySchemes: { api_key: null } } },
      'api_key is a security scheme that is not supported: use apiKey',
    ],
  ])('is refused with %s', async (name, part, want) => {
    const document = { ...JSON.parse(await readFile(PETSTORE, 'utf8')), ...part }
    const source = await newFolder(name, { 'openapi.json': JSON.stringify(document) })
    const root = join(folder, `service with ${name}`)
    await expect(init(root, join(source, 'openapi.json'))).rejects.toThrow(want)
  })

  it('can be the base of diff if the revision corrects its values', async () => {
    const text = FAULTY_LIMIT.replace('maximum: 5', 'maximum: 50')
    const base = await newFolder('faulty-base', { 'openapi.yaml': FAULTY_LIMIT })
    const root = await newFolder('corrected-base', { 'openapi.yaml': text })
    expect((await diff({ base, root })).changes).toMatchObject([{ level: 'safe' }])
    await expect(diff({ base: root, root: base })).rejects.toThrow('minimum 10 is above maximum 5')
  })

  it('is refused by init with the name of the file, and leaves no folder behind', async () => {
    const documents = await newFolder('original', {
      'bad.yaml': FAULTY_LIMIT.replace('{ description', "{ $ref: 'parts/none.yaml', description"),
      'worse.yaml': 'openapi: [',
    })
    const root = join(documents, 'new/service')
    const bad = join(documents, 'bad.yaml')
    await expect(init(root, bad)).rejects.toThrow(`${bad}:7 minimum 10 is above maximum 5`)
    await expect(init(root, bad)).rejects.toThrow(`${bad}:8 refers to parts/none.yaml`)
    const worse = join(documents, 'worse.yaml')
    await expect(init(root, worse)).rejects.toThrow(`${worse}:1 is not YAML`)
    expect(await readdir(documents)).toEqual(['bad.yaml', 'worse.yaml'])
  })

  it('is refused by init with the name of the part that has the problem', async () => {
    const documents = await newFolder('parts-of-original', {
      'library.yaml': LIBRARY,
      'parts/members.yaml': MEMBERS.replace('minLength: 1', 'minLength: one'),
    })
    const problem = `${join(documents, 'parts/members.yaml')}:6 minLength must be a whole number`
    const library = join(documents, 'library.yaml')
    await expect(init(join(documents, 'service'), library)).rejects.toThrow(problem)
  })

  it('is refused by init if references would name its old name', async () => {
    const documents = await newFolder('named-original', {
      'library.yaml': LIBRARY.replace(
        "'#/components/parameters",
        "'library.yaml#/components/parameters",
      ),
      'parts/members.yaml': MEMBERS,
    })
    await expect(init(join(documents, 'service'), join(documents, 'library.yaml'))).rejects.toThrow(
      'The copy of library.yaml is named openapi.yaml, but references name library.yaml. ' +
        'Rename library.yaml to openapi.yaml first, with the references.',
    )
  })

  it('leaves the folder of init usable for a corrected document', async () => {
    const documents = await newFolder('corrected', { 'bad.yaml': UNSUPPORTED.text })
    const root = join(documents, 'service')
    await mkdir(root)
    await expect(init(root, join(documents, 'bad.yaml'))).rejects.toThrow('is not supported')
    expect(await readdir(root)).toEqual([])
    const { written } = await init(root, PETSTORE)
    expect(written.length).toBeGreaterThan(0)
  })
})

const FAULTY_LIMIT = `openapi: 3.0.3
info: { title: Limits, version: '1' }
paths:
  /a:
    get:
      parameters:
        - { name: limit, in: query, schema: { type: integer, minimum: 10, maximum: 5 } }
      responses: { '204': { description: Nothing. } }
`

describe('a document that lacks a description or a version', () => {
  it('fails lint. The other commands name the parts and succeed', async () => {
    const root = await newFolder('incomplete', { 'openapi.yaml': INCOMPLETE })
    await using muster = await newMuster()
    const want = [
      'openapi.yaml:2 info has no version, which OpenAPI requires: add it',
      'openapi.yaml:8 response 204 has no description, which OpenAPI requires: add it',
      'openapi.yaml:12 response Missing has no description, which OpenAPI requires: add it',
    ]
    const lint = await muster.run(['lint', '--root', root])
    expect([lint.status, problemLines(lint.stdout)]).toEqual([1, want])
    for (const args of [['generate'], ['generate', '--check'], ['diff']]) {
      const { status, stdout } = await muster.run([...args, '--root', root])
      expect([args, status, problemLines(stdout)]).toEqual([args, 0, want])
    }
    const { results } = JSON.parse((await muster.run(['diff', '--root', root, '--json'])).stdout)
    expect(results).toMatchObject(Array(want.length).fill({ level: 'warning' }))
  })
})
