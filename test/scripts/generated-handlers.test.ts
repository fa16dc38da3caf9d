import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../repository.ts'
import { type ContractTree, newContractTree } from './contract-tree.ts'

describe('generated/handlers.ts', () => {
  const CALL = `import type {
  Body, OperationId, PathParams, QueryParams, SuccessBody
} from '../generated/operations.ts'
export interface Call<Id extends OperationId> {
  path: PathParams<Id>; query: QueryParams<Id>; body: Body<Id>
}
export type Handler<Id extends OperationId> = (call: Call<Id>) => Promise<SuccessBody<Id>>
export declare function notImplemented<Id extends OperationId>(id: Id): Handler<Id>
`
  const BODIES: Record<string, string> = {
    listNotes: `
      const page: number = call.query['page[number]']
      const sort: ('title' | '-title' | 'created_at' | '-created_at')[] | undefined = call.query.sort
      void [page, sort]
      return { data: [] }`,
    createNote:
      'return { title: call.body.title, colour: call.body.colour, due_at: null, owner: null }',
    getNote: 'return { headers: {}, stream: Readable.from(call.path.note) }',
    deleteNote: 'const none: never = call.body; void none',
  }
  const handler = (name: string, body: string, operationId = name) =>
    `import { Readable } from 'node:stream'
import type { SuccessBody } from '../generated/operations.ts'
import type { Call } from './call.ts'
export async function ${name}(
  call: Call<'${operationId}'>
): Promise<SuccessBody<'${operationId}'>> {
  void Readable
  ${body}
}
`

  async function newTreeWithHandlers() {
    const tree = await newContractTree()
    await tree.write('handlers/call.ts', CALL)
    for (const [name, body] of Object.entries(BODIES))
      await tree.write(`handlers/${name}.ts`, handler(name, body))
    await tree.generate()
    return tree
  }

  const CASES: {
    name: string
    change: (tree: ContractTree) => Promise<unknown>
    want: (string | RegExp)[]
  }[] = [
    { name: 'complete handlers', change: async () => {}, want: [] },
    {
      name: 'a missing handler',
      change: (tree) => tree.remove('handlers/getNote.ts'),
      want: [/^generated\/handlers\.ts: Cannot find module '\.\.\/handlers\/getNote\.ts'/],
    },
    {
      name: 'the generated stub',
      change: (tree) => tree.remove('handlers/getNote.ts').then(tree.generate),
      want: [],
    },
    {
      name: 'a handler without an operation',
      change: (tree) =>
        tree
          .write('handlers/printNote.ts', 'export async function printNote(): Promise<void> {}')
          .then(tree.generate),
      want: [/^generated\/handlers\.ts: .*'printNote' does not exist in type 'Handlers'/],
    },
    {
      name: 'a handler with the wrong response body',
      change: (tree) =>
        tree.write('handlers/getNote.ts', handler('getNote', 'return { data: [] }')),
      want: [/^handlers\/getNote\.ts: /],
    },
    {
      name: 'a handler typed for another operation',
      change: (tree) =>
        tree.write('handlers/getNote.ts', handler('getNote', 'return { data: [] }', 'listNotes')),
      want: [
        /^generated\/handlers\.ts: Type '\(call: Call<"listNotes">\) => Promise<.*>' is not assignable/,
      ],
    },
    {
      name: 'a handler of a renamed operation',
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
    const outcome = want.length === 0 ? 'compiles' : 'does not compile'
    test(`${outcome} with ${name}`, async () => {
      await using tree = await newTreeWithHandlers()
      await change(tree)
      const errors = compile(tree.root)
      if (want.length === 0) expect(errors).toEqual([])
      for (const line of want) expect(errors).toContainEqual(expect.stringMatching(line))
    })
  }
})

/** The parsed declaration files of node_modules, which all compilations share. */
const libraries = new Map<string, ts.SourceFile | undefined>()

/** The compiler's errors in generated/handlers.ts and its imports, as `file: message`. */
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
