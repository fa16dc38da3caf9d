/** The contract: openapi.yaml and asyncapi.yaml in one model. The toolchain and the documentation
 *  read it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EventMessage, readEvents } from './events.ts'
import { type Operation, readOperations } from './operations.ts'
import { assertReferences } from './references.ts'
import { isObject, type Path, type Source, type Sources, START, valueAt } from './source.ts'

export interface Contract {
  sources: Sources
  openapi: Source
  asyncapi: Source
  tags: Tag[]
  /** `x-modules`: the names that `x-module` of tags and `x-permission` of operations can have. */
  modules: string[]
  operations: Operation[]
  /** In the order of asyncapi.yaml. */
  events: EventMessage[]
  /** Event types that no request causes. */
  emittedBySystem: string[]
}

/** A tag of openapi.yaml, which groups the operations of a resource. */
export interface Tag {
  name: string
  description: string
  /** `x-module`: the module whose permission guards the resource's console pages. */
  module: string | undefined
  path: Path
}

/** Throws `ContractError` at the first fault that leaves the model incomplete. consistency.ts and
 *  supported.ts find the other faults. */
export function buildContract(openapi: Source, asyncapi: Source): Contract {
  const sources = { [openapi.file]: openapi, [asyncapi.file]: asyncapi }
  for (const source of [openapi, asyncapi]) assertReferences(sources, source)
  return {
    sources,
    openapi,
    asyncapi,
    tags: readTags(openapi),
    modules: (valueAt(openapi.root, ['x-modules']) ?? []) as string[],
    operations: readOperations(sources, openapi),
    events: readEvents(sources, asyncapi),
    emittedBySystem: (valueAt(openapi.root, ['x-emitted-by-system']) ?? []) as string[],
  }
}

function readTags({ root }: Source): Tag[] {
  const tags = valueAt(root, ['tags'])
  return (Array.isArray(tags) ? tags : [])
    .map((tag, index) => ({ tag, path: ['tags', index] }))
    .filter(({ tag }) => isObject(tag))
    .map(({ tag: { name, description, 'x-module': module }, path }) => ({
      name: String(name),
      description: String(description ?? ''),
      module: module === undefined ? undefined : String(module),
      path,
    }))
}

/** The model of generated/openapi.json and generated/asyncapi.json below `root`. Parsing the two
 *  takes 2 ms, parsing the YAML files 130 ms. Each `$ref` names its file, for example
 *  `openapi.json#/…`, so it means the same in both files. */
export function readGeneratedContract(root: string): Contract {
  const read = (file: string): Source => {
    const text = readFileSync(join(root, 'generated', file), 'utf8')
    const withFile = (key: string, value: unknown): unknown =>
      key === '$ref' && typeof value === 'string' && value.startsWith('#') ? file + value : value
    return {
      file,
      text,
      root: JSON.parse(text, withFile),
      position: () => START,
    }
  }
  return buildContract(read('openapi.json'), read('asyncapi.json'))
}
