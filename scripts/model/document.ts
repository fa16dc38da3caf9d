/** Reads an OpenAPI document that has no asyncapi.yaml beside it, such as that of another team. The
 *  document may have several files. */
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Refused } from '../../errors.ts'
import { bundle } from './bundle.ts'
import { type Contract, readTags, type Tag } from './contract.ts'
import { DOCUMENT_FILES, findDocument } from './document-folder.ts'
import { readPlainOperations } from './plain-operations.ts'
import { fileOf, listReferences } from './references.ts'
import { readServerPath } from './servers.ts'
import {
  ContractError,
  type Finding,
  isObject,
  lineOf,
  type Source,
  START,
  valueAt,
} from './source.ts'
import { newSource, parseYaml } from './yaml.ts'

/** A document has broken references, or parts that the toolchain does not support. The message has
 *  a line for each finding. */
export class UnsupportedDocument extends Refused {
  readonly findings: readonly Finding[]

  constructor(findings: readonly Finding[]) {
    const lines = findings.map(
      (finding) => `${finding.source.file}:${lineOf(finding)} ${finding.problem}`,
    )
    const count = lines.length === 1 ? '1 problem' : `${lines.length} problems`
    super([...lines, '', `${count}: correct the document, then try again.`].join('\n'))
    this.findings = findings
  }
}

/** Checks a document whose files are joined, so `openapi` refers to no other file. */
export type DocumentCheck = (openapi: Source) => {
  /** Parts that the toolchain does not support. */
  refused: Finding[]
  /** Absent parts that OpenAPI requires and the toolchain does not need. */
  missing: Finding[]
}

/** Reads the document in the folder `root`. Throws `UnsupportedDocument` with every finding,
 *  `ContractError` for text that is not YAML or JSON, and `Refused` if there is no document. */
export async function readDocument(root: string, check: DocumentCheck): Promise<Contract> {
  const file = findDocument(root)
  if (file === undefined)
    throw new Refused(`${root} has no ${DOCUMENT_FILES.join(', ')}: add one of them.`)
  const main = await readSource(root, file)
  const { sources, findings: unreadable } = await readReferencedFiles(root, main)
  const joined = bundle(sources, main)
  // The check cannot follow broken references. It gets the joined document even for a single file
  // with such references, because empty mappings replace them there.
  const canUseOriginal = Object.keys(sources).length === 1 && joined.findings.length === 0
  const openapi = canUseOriginal ? main : { ...main, root: joined.root }
  const toOriginal = ({ path, problem }: Finding): Finding => ({ ...joined.origin(path), problem })
  const { refused, missing } = check(openapi)
  // A reference into an unreadable file has no target either, but is reported once.
  const reported = new Set(unreadable.map(placeKey))
  const broken = joined.findings.filter((finding) => !reported.has(placeKey(finding)))
  const others = refused.map(toOriginal).filter((finding) => !isBelowAny(joined.findings, finding))
  const all = [...unreadable, ...broken, ...others]
  if (all.length > 0) throw new UnsupportedDocument(byFileAndLine(all))
  return { ...buildPlainContract(openapi), missing: byFileAndLine(missing.map(toOriginal)) }
}

const placeKey = ({ source, path }: Finding): string => JSON.stringify([source.file, ...path])

/** Whether the finding is in a mapping that has one of the broken references. */
function isBelowAny(broken: Finding[], { source, path }: Finding): boolean {
  return broken.some(
    (reference) =>
      reference.source.file === source.file &&
      reference.path.slice(0, -1).every((step, index) => path[index] === step),
  )
}

function byFileAndLine(findings: Finding[]): Finding[] {
  return findings.toSorted(
    (a, b) => a.source.file.localeCompare(b.source.file) || lineOf(a) - lineOf(b),
  )
}

/** The text of generated/openapi.json: the document in one file. */
export function renderDocument({ openapi }: Contract): string {
  return `${JSON.stringify(openapi.root, null, 2)}\n`
}

/** Throws `Refused` if generated/ in `root` was not written from this document. */
export async function assertDocumentGenerated(root: string, document: Contract): Promise<void> {
  const file = join(root, 'generated/openapi.json')
  const generated = await readFile(file, 'utf8').catch(() => undefined)
  if (generated === renderDocument(document)) return
  throw new Refused(
    `generated/ was not written from ${document.openapi.file} as it is now. Run "npm run generate" first.`,
  )
}

export function readGeneratedDocument(root: string): Contract {
  const file = 'openapi.json'
  const path = join(root, 'generated', file)
  if (!existsSync(path))
    throw new Refused(`generated/${file} does not exist. Run "npm run generate" first.`)
  const text = readFileSync(path, 'utf8')
  return buildPlainContract({ file, text, root: JSON.parse(text), position: () => START })
}

function buildPlainContract(openapi: Source): Contract {
  const sources = { [openapi.file]: openapi }
  const operations = readPlainOperations(sources, openapi)
  return {
    sources,
    openapi,
    asyncapi: { file: 'asyncapi.yaml', text: '', root: {}, position: () => START },
    tags: listTags(openapi, [...new Set(operations.map(({ tag }) => tag))]),
    modules: [],
    operations,
    events: [],
    emittedBySystem: [],
    missing: [],
  }
}

/** The tags that operations use. Tags that the document describes come first. */
function listTags(openapi: Source, used: string[]): Tag[] {
  const described = readTags(openapi).map((tag) => ({ ...tag, module: undefined }))
  const others = used.filter((name) => !described.some((tag) => tag.name === name))
  return [
    ...described.filter(({ name }) => used.includes(name)),
    ...others.map((name) => ({ name, description: '', module: undefined, path: [] })),
  ]
}

/** The base path of the first server, for example `/v1`. Empty for `/`, and without a server. */
export function readBasePath({ root }: Source): string {
  const server = valueAt(root, ['servers', 0])
  if (!isObject(server) || typeof server.url !== 'string') return ''
  return readServerPath(server)
}

export async function readSource(root: string, file: string): Promise<Source> {
  const text = await readFile(join(root, file), 'utf8')
  return file.endsWith('.json')
    ? newSource(file, text, () => JSON.parse(text))
    : parseYaml(file, text)
}

/** `sources` are `main` and the files that it refers to, directly or through other files.
 *  `findings` are the references to URLs, and those to files that cannot be read. Throws
 *  `ContractError` for a file that is not YAML or JSON. */
export async function readReferencedFiles(root: string, main: Source) {
  const sources: Record<string, Source> = { [main.file]: main }
  const findings: Finding[] = []
  const waiting = [main]
  for (let source = waiting.shift(); source; source = waiting.shift()) {
    for (const { path, ref } of listReferences(source)) {
      const refuse = (problem: string) => findings.push({ source: source as Source, path, problem })
      const isUrl = /^[a-z][a-z+.-]*:/i.test(ref)
      if (isUrl) {
        refuse(`refers to ${ref}: copy the target to a file of yours, and refer to that file`)
        continue
      }
      try {
        const file = fileOf(ref, source)
        if (file === '' || file in sources) continue
        const read = await readSource(root, file)
        sources[file] = read
        waiting.push(read)
      } catch (error) {
        if (error instanceof ContractError) throw error
        refuse(`refers to ${ref}, which cannot be read: correct the reference or add the file`)
      }
    }
  }
  return { sources, findings }
}
