/** How text is split into words, when the index is built and when it is searched. */

/**
 * Splits `job_application.created` and `createJobApplication` into their parts.
 * @param {string} text
 */
function splitWords(text) {
  const parts = text.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z0-9]+/)
  return parts.filter((part) => part !== '')
}

/** Words that readers search for, by the word that these pages use. */
const SYNONYMS = new Map(
  Object.entries({
    attempt: ['backoff'],
    batch: ['bulk'],
    copy: ['synchronise', 'synchronize', 'mirror', 'replicate'],
    delete: ['remove'],
    idempotency: ['duplicate'],
    key: ['credential', 'token'],
    limit: ['throttle', 'throttling', 'quota'],
    mock: ['sandbox', 'staging'],
    page: ['pagination', 'paginate', 'paging', 'cursor'],
    retry: ['backoff'],
    signature: ['hmac', 'digest'],
    update: ['edit', 'patch'],
    webhook: ['callback', 'hook'],
  }),
)

/**
 * Words in the plural have the synonyms of the singular.
 * @param {string} word
 */
function withSynonyms(word) {
  const term = word.toLowerCase()
  const singular = term.replace(/ies$/, 'y').replace(/s$/, '')
  return [term, ...(SYNONYMS.get(term) ?? SYNONYMS.get(singular) ?? [])]
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
  /** Only the index has synonyms: a search for several words must find all of them. */
  processTerm: withSynonyms,
  searchOptions: {
    /** @param {string} word */
    processTerm: (word) => word.toLowerCase(),
    /** @type {(id: unknown, term: string, stored?: Record<string, unknown>) => number} */
    boostDocument: (_id, _term, stored) => WEIGHTS.get(String(stored?.kind)) ?? 1,
    boost: { title: 4, names: 2 },
    prefix: true,
    fuzzy: 0.15,
    combineWith: /** @type {const} */ ('AND'),
  },
}
