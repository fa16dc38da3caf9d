/** A text of the contract never becomes code of a generated file. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { generate } from '../../scripts/generate/generate.ts'
import { parseYaml } from '../../scripts/model/yaml.ts'
import { NOTES } from './contract-tree.ts'

/** The identifier that each text would add to the code. */
const MARK = 'injectedByTheContract'
const PIECES = [
  ...['*/', '**//', '*\\/', '/*', '//', '*', '/', '\\', "'", '"', '`', '${', '}', '$', ';', '('],
  ...['\n', '\r', '\u2028', '\u2029', '-->', '<!--', '</script>', '[', ' ', MARK, `${MARK}()`],
]
const TEXT = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 8 })
  .map((pieces) => `${pieces.join('')} ${MARK}()`)

/** The keys whose values are texts. */
const TEXT_KEYS = ['title', 'summary', 'description', 'example', 'x-enum-descriptions']

/** A copy of the document with `text` in place of each text and each tag, and in each path. Each enum
 *  has it as an option, and each object as a property, with a pattern that matches it. */
function withText(node: unknown, text: string): unknown {
  if (Array.isArray(node)) return node.map((item) => withText(item, text))
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.entries(node).map(([key, value]) => {
    if (TEXT_KEYS.includes(key) && typeof value === 'string') return [key, text]
    if (key === 'enum' && 'type' in node && node.type === 'string') return [key, [...value, text]]
    if (key === 'tags') return [key, [text]]
    if (key === 'properties')
      return [key, { ...(withText(value, text) as object), [text]: toSchema(text) }]
    return [key.startsWith('/') ? `${key}/${toPath(text)}` : key, withText(value, text)]
  })
  return Object.fromEntries(copy)
}

const toSchema = (text: string): object => ({
  type: 'string',
  pattern: text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'),
})

/** Leaves out what `generate` refuses in a path. */
const toPath = (text: string): string => text.replace(/[?#{}]/g, '')

/** The names of all identifiers in the code. */
function listIdentifiers(file: string, code: string): Set<string> {
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest)
  // TypeScript does not declare this property.
  const { parseDiagnostics } = source as unknown as { parseDiagnostics: ts.Diagnostic[] }
  expect([file, parseDiagnostics.map(({ messageText }) => messageText)]).toEqual([file, []])
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) names.add(node.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

test('a text of the contract is no code in generated/ and in the stubs', async () => {
  const sources = await Promise.all(
    ['openapi.yaml', 'asyncapi.yaml'].map(async (file) =>
      parseYaml(file, await readFile(join(NOTES, file), 'utf8')),
    ),
  )
  await fc.assert(
    fc.asyncProperty(TEXT, async (text) => {
      const root = await mkdtemp(join(tmpdir(), 'texts-'))
      await using _root = { [Symbol.asyncDispose]: () => rm(root, { recursive: true }) }
      for (const { file, root: document } of sources) {
        const changed = { ...(withText(document, text) as object), 'x-modules': ['finance'] }
        await writeFile(join(root, file), JSON.stringify(changed))
      }
      const { written } = await generate({ check: false, root })
      const files = written.filter((file) => /\.[jt]s$/.test(file))
      expect(files).toContain('handlers/createNote.ts')
      expect(files).toContain('test/handlers/createNote.test.ts')
      const codes = await Promise.all(
        files.map(async (file) => [file, await readFile(join(root, file), 'utf8')] as const),
      )
      expect(codes.filter(([, code]) => code.includes(MARK)).length).toBeGreaterThan(5)
      for (const [file, code] of codes)
        expect([file, [...listIdentifiers(file, code)]]).not.toEqual([
          file,
          expect.arrayContaining([MARK]),
        ])
    }),
    { numRuns: 25 },
  )
})
