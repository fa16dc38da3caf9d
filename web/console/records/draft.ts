import type { FormField } from './field.ts'

/** The content of a form: texts by field path, such as `screening_questions.0.key`. A suffix adds
 *  other state, such as the type in `screening_questions.0.expected:kind`. */
export type Draft = URLSearchParams

/** A text of the field and its parts. Equal texts mean equal inputs. */
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

/** The number of groups: the submitted number, or more if a group with a higher index has an
 *  input. */
export function groupCount(draft: Draft, { path, schema }: FormField): number {
  const submitted = Number(draft.get(countName(path)) ?? 0)
  let count = Number.isSafeInteger(submitted) ? submitted : 0
  for (const name of draft.keys()) {
    const index = /^(\d{1,6})\./.exec(nameInField(name, path) ?? '')?.[1]
    if (index !== undefined) count = Math.max(count, Number(index) + 1)
  }
  // One too many gets its error. More would only cost time.
  return Math.min((schema.maxItems ?? MAX_LIST_GROUPS) + 1, count)
}

/** `0.key` for `screening_questions.0.key`. Undefined for the inputs of other fields. */
function nameInField(name: string, path: string): string | undefined {
  return name.startsWith(`${path}.`) ? name.slice(path.length + 1) : undefined
}

/** The draft without the groups that match. Later groups move up. */
export function withoutGroups(
  draft: Draft,
  field: FormField,
  isRemoved: (index: number) => boolean,
): Draft {
  const { path } = field
  const remaining = Array.from({ length: groupCount(draft, field) }, (_, index) => index).filter(
    (index) => !isRemoved(index),
  )
  const result = new URLSearchParams()
  for (const [name, value] of draft) {
    const inField = nameInField(name, path)
    if (inField === undefined) result.append(name, value)
    else {
      const [index, ...rest] = inField.split('.')
      const newIndex = remaining.indexOf(Number(index))
      if (newIndex !== -1) result.append([path, newIndex, ...rest].join('.'), value)
    }
  }
  result.set(countName(path), String(remaining.length))
  return result
}

/** Default values, and the default type of a scalar, count as empty. */
export function isEmptyGroup(draft: Draft, { path, schema }: FormField, index: number): boolean {
  return [...draft].every(([name, value]) => {
    const own = nameInField(name, `${path}.${index}`)
    if (own === undefined) return true
    if (own.endsWith(':kind')) return value === 'text'
    return value === String(schema.items?.properties?.[own]?.default ?? '')
  })
}
