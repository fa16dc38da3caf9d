/** How text becomes words: the same when the index is built and when it is searched. */

/**
 * `job_application.created` and `createJobApplication` are found by each of their parts.
 * @param {string} text
 */
function wordsOf(text) {
  const parts = text.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z0-9]+/)
  return parts.filter((part) => part !== '')
}

/** Of what is not about one operation or event. */
const WEIGHTS = new Map([
  ['Guide', 1.5],
  ['Schema', 0.7],
  ['Inside', 0.3],
])

/** For MiniSearch. */
export const OPTIONS = {
  fields: ['title', 'names', 'text'],
  storeFields: ['target', 'kind', 'title', 'hint'],
  tokenize: wordsOf,
  searchOptions: {
    /** @type {(id: unknown, term: string, stored?: Record<string, unknown>) => number} */
    boostDocument: (_id, _term, stored) => WEIGHTS.get(String(stored?.kind)) ?? 1,
    boost: { title: 4, names: 2 },
    prefix: true,
    fuzzy: 0.15,
    combineWith: /** @type {const} */ ('AND'),
  },
}
