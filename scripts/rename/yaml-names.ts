/** Renames fields in the text of a contract, only where the text names the field: in keys, values
 *  and code. The same word elsewhere stays as it is. */
import { isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import type { Path } from '../model/source.ts'
import { toPath } from '../model/yaml.ts'

/** New names by old name. */
export type Renames = ReadonlyMap<string, string>

/** Changes only lines whose number is in `lines`. */
export function renameInYaml(text: string, lines: ReadonlySet<number>, renames: Renames): string {
  const counter = new LineCounter()
  const edits: { start: number; end: number; text: string }[] = []
  visit(parseDocument(text, { lineCounter: counter }), {
    Scalar(key, node, ancestors) {
      const [start, end] = node.range ?? [0, 0]
      if (!lines.has(counter.linePos(start).line)) return
      const path = toPath([...ancestors, node])
      const before = text.slice(start, end)
      const isRenamed = key === 'key' ? isFieldKey(path) : isFieldValue(path, node.value, ancestors)
      const after = isRenamed ? renameWhole(before, renames) : renameCode(before, path, renames)
      if (after !== before) edits.push({ start, end, text: after })
    },
  })
  return edits.reduceRight(
    (whole, { start, end, text: edit }) => whole.slice(0, start) + edit + whole.slice(end),
    text,
  )
}

/** Whether the path leads to a field of a schema, `components.schemas.Task.properties.title`, or of
 *  an example: `….example.title`, `….example.data.0.title`. */
function isFieldKey(path: Path): boolean {
  const patterns = [
    /^components schemas \S+ properties \S+$/,
    / (example|value|payload)( data \d+)? \S+$/,
  ]
  return patterns.some((pattern) => pattern.test(path.join(' ')))
}

/** The paths of values that name a field. */
const NAMES_FIELD =
  / (required \d+|fields \d+|allowed_sorts \d+|x-currency|x-depends-on|discriminator propertyName)$/

/** Whether the value names a field: its path matches `NAMES_FIELD`, or it is in the `enum` of a
 *  sort. Such an `enum` also has the name with `-`. */
function isFieldValue(path: Path, value: unknown, ancestors: readonly unknown[]): boolean {
  const list = ancestors.at(-1)
  const names = isSeq(list) ? list.items.map((item) => isScalar(item) && item.value) : []
  const ascending = String(value).replace(/^-/, '')
  if (/ enum \d+$/.test(path.join(' '))) return names.includes(`-${ascending}`)
  return NAMES_FIELD.test(path.join(' '))
}

/** Renames a whole text: `title`, `-title` or `'-title'`. */
function renameWhole(text: string, renames: Renames): string {
  const [, start = '', name = '', end = ''] = /^(['"]?-?)(\w+)(['"]?)$/.exec(text) ?? []
  const newName = renames.get(name)
  return newName === undefined ? text : start + newName + end
}

/** Renames a part of a text: `filter[title]`, `` `title` `` in a description, or `TITLE_ASCENDING`
 *  in `x-enum-varnames`. */
function renameCode(text: string, path: Path, renames: Renames): string {
  let renamed = text
  for (const [name, newName] of renames) {
    renamed = renamed.replace(new RegExp(`(?<=filter\\[|\`-?)${name}(?=\\]|\`)`, 'g'), newName)
    if (path.includes('x-enum-varnames'))
      renamed = renamed.replace(
        new RegExp(`^${name.toUpperCase()}(?=_(ASC|DESC)ENDING$)`),
        newName.toUpperCase(),
      )
  }
  return renamed
}
