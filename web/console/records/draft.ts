import { typedAmount } from './amounts.ts'
import type { FormField } from './field.ts'

/** The content of a form: texts by field path, such as `screening_questions.0.key`. A suffix of
 *  the path adds other state, such as the kind in `screening_questions.0.expected:kind`. */
export type Draft = URLSearchParams

/** The inputs of the field and its parts as one text. Leaves out empty inputs and the number of
 *  groups, so that equal values give equal texts. */
export function serializeField(draft: Draft, field: FormField): string {
  const { path, kind } = field
  // The same text is another amount in another currency.
  if (kind === 'amount') return String(typedAmount(draft, field) ?? draft.get(path) ?? '')
  const inputs = [...draft].filter(
    ([name, value]) => belongsTo(name, path) && value !== '' && name !== countName(path),
  )
  return JSON.stringify(inputs.map(([name, value]) => [name, withLineFeeds(value)]).sort())
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

/** The name of the input for the kind of a value, such as `number` or `json`. */
export const kindName = (path: string): string => `${path}:kind`
/** The name of the input for the number of groups, including empty ones. A group holds the inputs
 *  for one object of a list. */
export const countName = (path: string): string => `${path}:count`

/** For a list without `maxItems`. */
const DEFAULT_MAX_GROUPS = 100

/** The number of groups: the submitted number, or more if a group with a higher index has an
 *  input. */
export function groupCount(draft: Draft, { path, schema }: FormField): number {
  const submitted = Number(draft.get(countName(path)) ?? 0)
  let count = Number.isSafeInteger(submitted) ? submitted : 0
  for (const name of draft.keys()) {
    const index = /^(\d{1,6})\./.exec(nameInField(name, path) ?? '')?.[1]
    if (index !== undefined) count = Math.max(count, Number(index) + 1)
  }
  // One group too many is enough for the API to refuse the list. More would only cost time.
  return Math.min((schema.maxItems ?? DEFAULT_MAX_GROUPS) + 1, count)
}

/** `0.key` for `screening_questions.0.key`. Undefined if `name` is no part of the field. */
function nameInField(name: string, path: string): string | undefined {
  return name.startsWith(`${path}.`) ? name.slice(path.length + 1) : undefined
}

/** The draft without the groups for which `isRemoved` is true. The groups after them move up. */
export function withoutGroups(
  draft: Draft,
  field: FormField,
  isRemoved: (index: number) => boolean,
): Draft {
  const { path } = field
  const indexes = Array.from({ length: groupCount(draft, field) }, (_, index) => index)
  const keptIndexes = indexes.filter((index) => !isRemoved(index))
  const result = new URLSearchParams()
  for (const [name, value] of draft) {
    const inField = nameInField(name, path)
    if (inField === undefined) result.append(name, value)
    else {
      const [index, ...innerPath] = inField.split('.')
      const newIndex = keptIndexes.indexOf(Number(index))
      if (newIndex !== -1) result.append([path, newIndex, ...innerPath].join('.'), value)
    }
  }
  result.set(countName(path), String(keptIndexes.length))
  return result
}

/** Whether the user has typed nothing into the group. Its default values, and the default kind
 *  `text`, do not count. */
export function isEmptyGroup(draft: Draft, { path, schema }: FormField, index: number): boolean {
  return [...draft].every(([name, value]) => {
    const inGroup = nameInField(name, `${path}.${index}`)
    if (inGroup === undefined) return true
    if (inGroup.endsWith(':kind')) return value === 'text'
    return value === String(schema.items?.properties?.[inGroup]?.default ?? '')
  })
}
