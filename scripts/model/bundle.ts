/** Joins the files of an OpenAPI document into the main file. The target of a reference to another
 *  file becomes a component. A path item, operation or media type replaces the reference
 *  instead. */
import { posix } from 'node:path'
import { isData } from './nodes.ts'
import { listExampleReferences, locate } from './references.ts'
import {
  type Finding,
  isObject,
  type Located,
  type Path,
  type Place,
  type Source,
  type Sources,
} from './source.ts'

interface Bundle {
  root: Record<string, unknown>
  /** References without a target. */
  findings: Finding[]
  /** The place of a node in the original files. */
  origin(bundlePath: Path): Place
}

/** The kinds of components besides schemas. A reference to one is usually in a map or list with the
 *  name of the kind. */
const OTHER_KINDS = [
  ...['parameters', 'responses', 'headers', 'links', 'callbacks', 'requestBodies'],
  ...['securitySchemes', 'examples'],
]

export function bundle(sources: Sources, main: Source): Bundle {
  const bundler = new Bundler(sources, main)
  const root = bundler.copy(main.root, { source: main, path: [], bundlePath: [], inSchema: false })
  return bundler.finish(root as Record<string, unknown>)
}

/** The place of a node in its file. */
interface NodePlace extends Place {
  bundlePath: Path
  inSchema: boolean
}

class Bundler {
  private readonly sources: Sources
  private readonly main: Source
  private readonly components: Record<string, Record<string, unknown>> = {}
  /** The path in the bundle of each component from another file, by its value in that file. */
  private readonly addedPaths = new Map<unknown, Path>()
  /** The original place of each copied target. The key is its path in the bundle, with the steps
   *  joined by line breaks. */
  private readonly origins = new Map<string, Place>()
  private readonly findings: Finding[] = []

  constructor(sources: Sources, main: Source) {
    this.sources = sources
    this.main = main
  }

  copy(node: unknown, place: NodePlace): unknown {
    if (!isObject(node)) return node
    const { source, path, bundlePath, inSchema } = place
    if (typeof node.$ref === 'string') return this.copyReference(node, node.$ref, place)
    if (Array.isArray(node))
      return node.map((item, index) =>
        this.copy(item, {
          source,
          path: [...path, index],
          bundlePath: [...bundlePath, index],
          inSchema,
        }),
      )
    return Object.fromEntries(
      Object.entries(node).map(([key, value]) => {
        if (isData(key, path)) return [key, this.copyData(key, value, place)]
        if (key === 'mapping' && path.at(-1) === 'discriminator')
          return [key, this.copyMapping(value, place)]
        const isSchema = inSchema || key === 'schema' || path.join('/') === 'components/schemas'
        const below = {
          source,
          path: [...path, key],
          bundlePath: [...bundlePath, key],
          inSchema: isSchema,
        }
        return [key, this.copy(value, below)]
      }),
    )
  }

  /** Copies the mapping of a discriminator. Keeps targets that are names of schemas. Replaces
   *  targets that are references by references within the bundle. */
  private copyMapping(mapping: unknown, place: NodePlace): unknown {
    const targets = Object.entries((mapping ?? {}) as Record<string, string>)
    return Object.fromEntries(
      targets.map(([value, target]) => {
        const isReference = /[#/]|\.(ya?ml|json)$/.test(target)
        if (!isReference) return [value, target]
        const { $ref = target } = this.copyReference({}, target, place) as { $ref?: string }
        return [value, $ref]
      }),
    )
  }

  /** Keeps data, but follows named examples that are references. */
  private copyData(key: string, value: unknown, { source, path, bundlePath }: NodePlace): unknown {
    if (key !== 'examples') return value
    const references = listExampleReferences(value).map(([name, example]) => {
      const below = { path: [...path, key, name], bundlePath: [...bundlePath, key, name] }
      return [name, this.copy(example, { source, ...below, inSchema: false })]
    })
    return references.length === 0
      ? value
      : { ...(value as object), ...Object.fromEntries(references) }
  }

  private copyReference(node: object, ref: string, place: NodePlace): unknown {
    const { source, path, bundlePath, inSchema } = place
    let target: Located
    try {
      target = locate(this.sources, source, ref)
    } catch (error) {
      this.findings.push({ source, path: [...path, '$ref'], problem: (error as Error).message })
      return {}
    }
    if (target.source === this.main) return { ...node, $ref: toPointer(target.path) }
    if (!inSchema && hasNoComponent(bundlePath)) {
      this.origins.set(bundlePath.join('\n'), target)
      return this.copy(target.value, { ...target, bundlePath, inSchema: false })
    }
    return { ...node, $ref: toPointer(this.addComponent(target, place)) }
  }

  private addComponent(target: Located, { path, inSchema }: NodePlace): Path {
    const addedPath = this.addedPaths.get(target.value)
    if (addedPath) return addedPath
    const kind = inSchema ? 'schemas' : kindOf(path)
    this.components[kind] ??= {}
    const added = this.components[kind]
    const { components } = this.main.root as { components?: Record<string, object> }
    const ofMain = components?.[kind] ?? {}
    const fileName = posix.basename(target.source.file).replace(/\.\w+$/, '')
    const wanted = String(target.path.at(-1) ?? fileName).replace(/[^\w.-]/g, '_')
    let name = wanted
    for (let count = 2; name in ofMain || name in added; count += 1) name = `${wanted}${count}`
    const bundlePath = ['components', kind, name]
    // The target may refer to itself: the copy below then finds this path.
    this.addedPaths.set(target.value, bundlePath)
    this.origins.set(bundlePath.join('\n'), target)
    // Reserves the name and the position, because the copy may add further components.
    added[name] = {}
    added[name] = this.copy(target.value, { ...target, bundlePath, inSchema: kind === 'schemas' })
    return bundlePath
  }

  finish(root: Record<string, unknown>): Bundle {
    const { origins, main, findings, components } = this
    const merged: Record<string, unknown> = { ...(root.components as object) }
    for (const [kind, added] of Object.entries(components))
      merged[kind] = { ...(merged[kind] as object), ...added }
    return {
      root: Object.keys(merged).length > 0 ? { ...root, components: merged } : root,
      findings,
      origin(bundlePath) {
        for (let length = bundlePath.length; length > 0; length -= 1) {
          const origin = origins.get(bundlePath.slice(0, length).join('\n'))
          if (origin)
            return { source: origin.source, path: [...origin.path, ...bundlePath.slice(length)] }
        }
        return { source: main, path: bundlePath }
      },
    }
  }
}

/** Whether the node is a path item, an operation or a media type: OpenAPI 3.0 has no kind of
 *  component for them. Some public documents have references in their places. */
function hasNoComponent(bundlePath: Path): boolean {
  return (bundlePath.length <= 3 && bundlePath[0] === 'paths') || bundlePath.at(-2) === 'content'
}

/** A JSON Pointer in a URI fragment (RFC 6901 §6). */
function toPointer(path: Path): string {
  const tokens = path.map((step) => String(step).replaceAll('~', '~0').replaceAll('/', '~1'))
  return `#${tokens.map((token) => `/${encodeURIComponent(token)}`).join('')}`
}

function kindOf(path: Path): string {
  if (path.at(-1) === 'requestBody') return 'requestBodies'
  const parent = String(path.at(-2))
  return OTHER_KINDS.includes(parent) ? parent : 'schemas'
}
