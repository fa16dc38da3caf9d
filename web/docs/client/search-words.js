/** How text is split into words, when the index is built and when it is searched. */

/**
 * Splits `job_application.created` and `createJobApplication` into their parts.
 * @param {string} text
 */
function splitWords(text) {
  const parts = text.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z0-9]+/)
  return parts.filter((part) => part !== '')
}

/** The weights of results, by kind. Other kinds weigh 1. */
const WEIGHTS = new Map([
  ['Guide', 1.5],
  ['Schema', 0.7],
  ['Internals', 0.3],
])

/** Options of MiniSearch. */
export const OPTIONS = {
  fields: ['title', 'names', 'text'],
  storeFields: ['target', 'kind', 'title', 'hint'],
  tokenize: splitWords,
  searchOptions: {
    /** @type {(id: unknown, term: string, stored?: Record<string, unknown>) => number} */
    boostDocument: (_id, _term, stored) => WEIGHTS.get(String(stored?.kind)) ?? 1,
    boost: { title: 4, names: 2 },
    prefix: true,
    fuzzy: 0.15,
    combineWith: /** @type {const} */ ('AND'),
  },
}
