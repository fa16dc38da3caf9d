import type { FormField } from './field.ts'

/** The content of a form: texts by field path, such as `screening_questions.0.key`. A suffix adds
 *  other state, such as the type in `screening_questions.0.expected:kind`. */
export type Draft = URLSearchParams

/** A canonical text of the field and its parts, for comparison. */
export function serializeField(draft: Draft, { path }: Pick<FormField, 'path'>): string {
  const own = [...draft].filter(
    ([name, value]) => belongsTo(name, path) && value !== '' && name !== countName(path),
  )
  return JSON.stringify(own.map(([name, value]) => [name, withLineFeeds(value)]).sort())
}

/** Replaces the field in `to` with the field of `from`. */
export function copyField(to: Draft, from: Draft, { path }: Pick<FormField, 'path'>): void {
  for (const name of [...to.keys()]) if (belongsTo(name, path)) to.delete(name)
  for (const [name, value] of from) if (belongsTo(name, path)) to.append(name, value)
}

export function isInForm(draft: Draft, { path }: Pick<FormField, 'path'>): boolean {
  return [...draft.keys()].some((name) => belongsTo(name, path))
}

function belongsTo(name: string, path: string): boolean {
  return name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}:`)
}

/** Browsers send all line breaks as CRLF. */
export function withLineFeeds(text: string): string {
  return text.replace(/\r\n?/g, '\n')
}

/** The input for the type of a value. */
export const kindName = (path: string): string => `${path}:kind`
/** The input for the number of groups, including empty ones. */
export const countName = (path: string): string => `${path}:count`

const MAX_LIST_GROUPS = 100

/** The number of groups: the larger of the submitted count and the highest index in use. */
export function groupCount(draft: Draft, { path, schema }: FormField): number {
  const submitted = Number(draft.get(countName(path)) ?? 0)
  let count = Number.isSafeInteger(submitted) ? submitted : 0
  for (const name of draft.keys())
    if (name.startsWith(`${path}.`))
      count = Math.max(
        count,
        Number(/^\d{1,6}(?=\.)/.exec(name.slice(path.length + 1))?.[0] ?? -1) + 1,
      )
  // One too many gets its error. More would only cost time.
  return Math.min((schema.maxItems ?? MAX_LIST_GROUPS) + 1, count)
}

/** The draft without the groups that match. Later groups move up. */
export function withoutGroups(
  draft: Draft,
  field: FormField,
  isRemoved: (index: number) => boolean,
): Draft {
  const indexes = Array.from({ length: groupCount(draft, field) }, (_, index) => index).filter(
    (index) => !isRemoved(index),
  )
  const entries = [...draft].flatMap(([name, value]): [string, string][] => {
    if (!name.startsWith(`${field.path}.`))
      return name === countName(field.path) ? [] : [[name, value]]
    const [index = '', ...rest] = name.slice(field.path.length + 1).split('.')
    const place = indexes.indexOf(Number(index))
    return place === -1 ? [] : [[[field.path, place, ...rest].join('.'), value]]
  })
  return new URLSearchParams([...entries, [countName(field.path), String(indexes.length)]])
}

/** Ignores default values and the default type of a scalar. */
export function isEmptyGroup(draft: Draft, { path, schema }: FormField, index: number): boolean {
  const prefix = `${path}.${index}.`
  const isDefault = (name: string, value: string): boolean =>
    name.endsWith(':kind')
      ? value === 'text'
      : value === String(schema.items?.properties?.[name]?.default ?? '')
  return [...draft].every(
    ([name, value]) => !name.startsWith(prefix) || isDefault(name.slice(prefix.length), value),
  )
}
