/** Labels for names in the contract. */
import type { InvalidInput } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import { capital } from '../format.ts'

const ABBREVIATIONS: Record<string, string> = {
  id: 'ID',
  csv: 'CSV',
  csv_raw: 'CSV for programs',
  json: 'JSON',
  ndjson: 'NDJSON',
  xlsx: 'Excel',
  url: 'URL',
  sha256: 'SHA-256',
}

/** `due_at` → `Due at`, `external_id` → `External ID`. */
export function label(name: string): string {
  return capital(words(name))
}

/** `in_progress` → `In progress`. Codes such as `EUR` stay unchanged. */
export function option(value: unknown): string {
  const text = String(value)
  return /^[a-z][a-z0-9_]*$/.test(text) ? label(text) : text
}

/** Singular: `job application`. */
export function noun({ type }: Pick<Resource, 'type'>): string {
  return words(type)
}

/** `Job applications`. */
export function plural({ slug }: Pick<Resource, 'slug'>): string {
  return label(slug)
}

/** For example `Due at must be a time. Title is required.` */
export function errorText({ errors }: InvalidInput): string {
  return Object.entries(errors)
    .map(([name, messages]) => `${label(name)} ${messages.join(' ')}`)
    .join(' ')
}

function words(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => ABBREVIATIONS[word] ?? word)
    .join(' ')
}
