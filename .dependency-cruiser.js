/** The rules for imports, which `npm run check` enforces. Biome checks style, names and
 *  formatting. */

/** From top to bottom. A folder imports itself and the rows below it.
 *  Two folders of one row do not import each other. */
const ROWS = [
  ['bin/'],
  ['cli/'],
  ['server/'],
  ['web/'],
  ['operations/'],
  ['(handlers/|generated/handlers\\.ts$)'],
  ['webhooks/', 'auth/'],
  ['records/'],
  ['runtime/'],
  ['validation\\.ts$'],
  ['generated/(?!handlers\\.ts$)'],
]

/** Each of these packages is imported in one place only. The place is a folder or a file. */
const OWNERS = {
  '@fastify/busboy': 'web/console/records/import-upload\\.ts$',
  '@electric-sql/pglite': 'webhooks/queue/',
  '@koa/cors': 'server/cross-origin\\.ts$',
  '@koa/router': '(server|web)/',
  '@opentelemetry/api': 'runtime/tracing\\.ts$',
  ajv: '(scripts/generate/|scripts/contract/values/|validation\\.ts$|generated/validators)',
  commander: 'cli/',
  'content-type': 'server/body\\.ts$',
  'currency-codes': 'web/console/records/amounts\\.ts$',
  envalid: 'server/config\\.ts$',
  'highlight.js': 'web/docs/',
  'js-yaml': 'scripts/model/yaml\\.ts$',
  knex: 'records/database/',
  'markdown-it': 'web/docs/markdown\\.ts$',
  minisearch: 'web/docs/',
  'openapi-backend': 'server/',
  pg: '(records/database|webhooks/queue)/',
  'pg-boss': 'webhooks/queue/',
  'prom-client': 'server/metrics[\\w-]*\\.ts$',
  'rate-limiter-flexible': 'auth/rate-limit\\.ts$',
  sqlite3: 'records/database/',
  undici: '(webhooks/transport|cli|scripts/receiver)/',
}

const place = (paths) => `^(${[paths].flat().join('|')})`

const above = ROWS.flatMap((row, index) =>
  row.map((folder) => ({
    name: `no-import-upwards: ${/\w+/.exec(folder)}/`,
    from: { path: place(folder) },
    to: { path: place(ROWS.slice(0, index + 1).flat()), pathNot: place(folder) },
  })),
)

const owners = Object.entries(OWNERS).map(([name, owner]) => ({
  name: `one-importer: ${name}`,
  from: { path: place([...ROWS.flat(), 'scripts/']), pathNot: place(owner) },
  to: { path: `^node_modules/${name}/`, dependencyTypesNot: ['type-only'] },
}))

const PRODUCT = place([...ROWS.flat(), 'scripts/', 'client/', 'errors\\.ts$'])

export default {
  forbidden: [
    { name: 'no-cycle', from: {}, to: { circular: true } },
    {
      name: 'no-unresolved-import',
      comment: 'Dredd itself provides "hooks".',
      from: {},
      to: { couldNotResolve: true, pathNot: '^hooks$' },
    },
    ...above,
    {
      name: 'cli-is-the-top',
      comment: 'Only bin/ and tests import a command.',
      from: { pathNot: '^(bin|cli|test)/' },
      to: { path: '^cli/' },
    },
    {
      name: 'scripts-stand-alone',
      comment: 'The toolchain reads the contracts, not the service.',
      from: { path: '^scripts/' },
      to: { path: place(ROWS.slice(0, -1).flat()) },
    },
    {
      name: 'toolchain-only-for-commands',
      comment: 'Other rows may import only the contract model.',
      from: { path: place(ROWS.flat()), pathNot: '^cli/' },
      to: { path: '^scripts/(?!model/)' },
    },
    { name: 'errors-is-the-bottom', from: { path: '^errors\\.ts$' }, to: { path: '.' } },
    { name: 'no-import-of-tests', from: { path: PRODUCT }, to: { path: '^test/' } },
    {
      name: 'serve-without-toolchain',
      comment: 'A server is installed with "npm ci --omit=dev".',
      from: { path: '^cli/serve\\.ts$' },
      to: { path: '^scripts/(?!model/)', reachable: true },
    },
    {
      name: 'no-development-package',
      comment: 'A server is installed with "npm ci --omit=dev".',
      from: { path: place([...ROWS.flat(), 'scripts/model/', 'errors\\.ts$']) },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    ...owners,
  ].map((rule) => ({ severity: 'error', ...rule })),
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(web/\\w+/client/|generated/\\w+\\.json$)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types'] },
  },
}
