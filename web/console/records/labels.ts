/** Labels for names in the contract. */
import type { InvalidInput } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { capital } from '../format.ts'

const ABBREVIATIONS: Record<string, string> = {
  id: 'ID',
  csv: 'CSV',
  json: 'JSON',
  ndjson: 'NDJSON',
  xlsx: 'Excel',
  url: 'URL',
  sha256: 'SHA-256',
}

/** `due_at` → `Due`, `external_id` → `External ID`. */
export function label(name: string): string {
  return capital(words(name.replace(/_at$/, '')))
}

/** A column of an export. */
export function columnLabel(name: string): string {
  return label(name).replace(/ minor$/, '')
}

/** The formats of an export. Other files have only one kind of CSV. */
const CSV_KINDS: Record<string, string> = { csv: 'CSV for spreadsheets', csv_raw: 'CSV unchanged' }

/** `in_progress` → `In progress`. Codes such as `EUR` stay unchanged. */
export function option(value: unknown, { enum: options = [] }: Schema = {}): string {
  const text = String(value)
  const csvKind = options.includes('csv_raw') ? CSV_KINDS[text] : undefined
  if (csvKind !== undefined) return csvKind
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

/** For example `Due must be a time. Title is required.` */
export function errorText({ errors }: Pick<InvalidInput, 'errors'>): string {
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
