/** The words of forms, where the names and descriptions of the contract are for programs. */
interface Wording {
  label?: string
  /** Replaces the description of the contract. */
  hint?: string
  placeholder?: string
  /** What the options mean, which are radio buttons then. */
  options?: Record<string, string>
  /** The text of the fold that hides the field, which most people leave empty. */
  foldedAs?: string
  /** The names of the parts, in the order of the form. */
  order?: string[]
}

const NO_HINT: Wording = { hint: '' }

/** By the path of the field, without the indexes of lists. `filters.*` has the filters of exports. */
const WORDINGS: Record<string, Wording> = {
  full_name: NO_HINT,
  email: NO_HINT,
  phone: NO_HINT,
  title: NO_HINT,
  description: NO_HINT,
  status: NO_HINT,
  due_at: NO_HINT,
  external_id: {
    hint: 'The ID of this record in your own system.',
    foldedAs: 'ID in your own system',
  },
  screening_questions: {
    hint: 'Applicants answer these questions. Their answers decide the screening outcome.',
    order: ['label', 'requirement', 'operator', 'expected', 'key'],
  },
  'screening_questions.label': { label: 'Question', hint: '' },
  'screening_questions.operator': { label: 'Comparison', hint: '' },
  'screening_questions.expected': { label: 'Expected answer', hint: '' },
  'screening_questions.requirement': { label: 'Importance', hint: '' },
  'screening_questions.key': {
    hint: '',
    placeholder: 'Made from the question',
    foldedAs: 'Key for the API',
  },
  answers: NO_HINT,
  row_count: { label: 'Rows' },
  byte_size: { label: 'File size' },
  created_count: { label: 'Rows created' },
  updated_count: { label: 'Rows updated' },
  unchanged_count: { label: 'Rows unchanged' },
  refused_count: { label: 'Rows refused' },
  resource: { label: 'Records', hint: '' },
  format: {
    hint: '',
    options: {
      csv: 'Opens in Excel, Numbers and Google Sheets. Text that looks like a formula gets an apostrophe.',
      csv_raw: 'For programs: each text exactly as it is. Do not open it in a spreadsheet.',
      json: 'For programs: complete records, as the API returns them.',
      xlsx: 'A workbook with one sheet.',
    },
  },
  filters: {
    hint: 'The export has the records that match all filters. Without filters, it has all records.',
  },
  'filters.*': NO_HINT,
}

export function wordingOf(path: string): Wording {
  const key = path.replace(/\.\d+(?=\.|$)/g, '')
  return WORDINGS[key] ?? WORDINGS[key.replace(/\.[^.]+$/, '.*')] ?? {}
}

/** The entries of an object in the order of the form: names without a place come last. */
export function inFormOrder<Value>(
  path: string,
  entries: [name: string, value: Value][],
): [name: string, value: Value][] {
  const { order } = wordingOf(path)
  return order
    ? entries.toSorted(([one], [other]) => placeIn(order, one) - placeIn(order, other))
    : entries
}

function placeIn(order: string[], name: string): number {
  const index = order.indexOf(name)
  return index === -1 ? order.length : index
}
