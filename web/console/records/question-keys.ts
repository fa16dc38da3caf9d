/** Screening questions have a key in the API. People need not think of one. */
import type { Schema } from '../../../scripts/model/schema.ts'

type Group = Record<string, unknown>

/** Leaves room for a number after it, in the 64 characters of the contract. */
const MAX_KEY_LENGTH = 60

/** Gives a key to each object that has a label and no key: `do_you_speak_french`. Unchanged if the
 *  schema of the objects has no such fields. */
export function withKeys(groups: Group[], { properties = {} }: Schema): Group[] {
  if (!('key' in properties && 'label' in properties)) return groups
  const taken = new Set(groups.map(({ key }) => key))
  return groups.map((group) => {
    if (group.key !== undefined || typeof group.label !== 'string') return group
    const key = freeKey(toKey(group.label), taken)
    taken.add(key)
    return { ...group, key }
  })
}

function toKey(text: string): string {
  const words = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  const key = words.replace(/[^a-z0-9]+/g, '_').replace(/^_/, '')
  return key.slice(0, MAX_KEY_LENGTH).replace(/_$/, '') || 'question'
}

function freeKey(key: string, taken: Set<unknown>): string {
  let free = key
  for (let number = 2; taken.has(free); number++) free = `${key}_${number}`
  return free
}
