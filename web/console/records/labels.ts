/** Names of the contract, in words for people. */
import type { Resource } from '../../../generated/resources.ts'

const ABBREVIATIONS: Record<string, string> = {
  id: 'ID',
  csv: 'CSV',
  json: 'JSON',
  url: 'URL',
  sha256: 'SHA-256',
}

/** `Due at` of `due_at`, `External ID` of `external_id`. */
export function label(name: string): string {
  return capital(words(name))
}

/** What an option of an enumeration is called: `In progress` of `in_progress`. Codes such as `EUR` are as they are. */
export function option(value: unknown): string {
  const text = String(value)
  return /^[a-z][a-z0-9_]*$/.test(text) ? label(text) : text
}

/** Of one: `job application`. */
export function noun({ type }: Pick<Resource, 'type'>): string {
  return words(type)
}

/** Of all: `Job applications`. */
export function plural({ slug }: Pick<Resource, 'slug'>): string {
  return label(slug)
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function words(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => ABBREVIATIONS[word] ?? word)
    .join(' ')
}
