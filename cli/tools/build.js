// Writes the JavaScript of the commands, the modules that they import, and the files that they read
// to dist/, or to the folder in the argument. `npm pack` runs it.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OUT = process.argv[2] ?? fileURLToPath(new URL('dist', import.meta.url))
const ENTRY = 'cli/tools/main.ts'
/** Modules of the service, which these commands never load. */
const SERVICE = ['cli/contract-service.ts', 'cli/installation.ts', 'server/config.ts']
/** Files and folders that the modules read. */
const FILES = [
  ...['openapi.yaml', 'asyncapi.yaml', 'CHANGELOG.md', 'docs', 'web/docs/client', 'web/shared'],
  ...['openapi.json', 'openapi-3.1.json', 'asyncapi.json', 'sources.json', 'validators.js'].map(
    (name) => `generated/${name}`,
  ),
]
const NOT_READ = /^(?!docs\/).*\.ts$|^docs\/images/

const { options } = ts.convertCompilerOptionsFromJson(
  {
    target: 'es2022',
    module: 'esnext',
    verbatimModuleSyntax: true,
    rewriteRelativeImportExtensions: true,
  },
  ROOT,
)

rmSync(OUT, { recursive: true, force: true })
for (const file of FILES)
  cpSync(join(ROOT, file), join(OUT, file), {
    recursive: true,
    filter: (path) => !NOT_READ.test(relative(ROOT, path)),
  })
const built = new Set()
build(ENTRY)

/** Compiles a module and the modules that it imports at run time. */
function build(file) {
  if (built.has(file) || SERVICE.includes(file) || !file.endsWith('.ts')) return
  built.add(file)
  const source = readFileSync(join(ROOT, file), 'utf8')
  const { outputText } = ts.transpileModule(source, { compilerOptions: options, fileName: file })
  const target = join(OUT, file.replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, outputText)
  // The imports of types are in the source only.
  const runtime = new Set(listImports(outputText).map((name) => name.replace(/\.js$/, '')))
  for (const name of listImports(source))
    if (runtime.has(name.replace(/\.[jt]s$/, ''))) build(join(dirname(file), name))
}

function listImports(text) {
  return ts
    .preProcessFile(text)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.'))
}
