/** The texts of a form, by the path of their field. */

import type { FormField } from './field.ts'

/** What is in a form: texts by the path of their field, such as `screening_questions.0.key`. What a text cannot say is beside it, such as
 *  `screening_questions.0.expected:kind`. */
export type Draft = URLSearchParams

/** All that a form holds of a field, to be compared. */
export function serializeField(draft: Draft, { path }: Pick<FormField, 'path'>): string {
  const own = [...draft].filter(
    ([name, value]) => belongsTo(name, path) && value !== '' && name !== countName(path),
  )
  return JSON.stringify(own.map(([name, value]) => [name, withLineFeeds(value)]).sort())
}

/** Puts what one form holds of a field in the place of what another does. */
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

/** What kind of value the text of a field stands for. */
export const kindName = (path: string): string => `${path}:kind`
/** How many groups a form has, empty ones included. */
export const countName = (path: string): string => `${path}:count`

/** Enough for any contract: a form of more would be no form. */
const MAX_GROUPS = 200

/** How many groups the form holds, up to the last that has anything in it, or as many as it says. */
export function groupCount(draft: Draft, { path }: Pick<FormField, 'path'>): number {
  const said = Number(draft.get(countName(path)) ?? 0)
  let count = Number.isSafeInteger(said) ? said : 0
  for (const name of draft.keys())
    if (name.startsWith(`${path}.`))
      count = Math.max(
        count,
        Number(/^\d{1,6}(?=\.)/.exec(name.slice(path.length + 1))?.[0] ?? -1) + 1,
      )
  return Math.min(MAX_GROUPS, count)
}

/** The same form without the groups that `isLeftOut`: those after one move up. */
export function withoutGroups(
  draft: Draft,
  field: FormField,
  isLeftOut: (index: number) => boolean,
): Draft {
  const kept = Array.from({ length: groupCount(draft, field) }, (_, index) => index).filter(
    (index) => !isLeftOut(index),
  )
  const entries = [...draft].flatMap(([name, value]): [string, string][] => {
    if (!name.startsWith(`${field.path}.`))
      return name === countName(field.path) ? [] : [[name, value]]
    const [index = '', ...rest] = name.slice(field.path.length + 1).split('.')
    const place = kept.indexOf(Number(index))
    return place === -1 ? [] : [[[field.path, place, ...rest].join('.'), value]]
  })
  return new URLSearchParams([...entries, [countName(field.path), String(kept.length)]])
}

/** Has nobody typed anything into the group? The kind of a text is none yet. */
export function isEmptyGroup(draft: Draft, { path }: FormField, index: number): boolean {
  const prefix = `${path}.${index}.`
  return ![...draft].some(
    ([name, value]) =>
      name.startsWith(prefix) && value !== '' && !(name.endsWith(':kind') && value === 'text'),
  )
}
