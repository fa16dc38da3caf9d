/** Checks the contracts with the validators and linters that other teams use. The program fails for
 *  any error or warning. `npm run lint:contracts` runs it. It needs the development dependencies,
 *  but no network. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import SwaggerParser from '@apidevtools/swagger-parser'
import { Parser } from '@asyncapi/parser'
import spectralCore from '@stoplight/spectral-core'
import spectralParsers from '@stoplight/spectral-parsers'
import rulesets from '@stoplight/spectral-rulesets'
import { formatProblem } from './lint.ts'
import { lintByStrictRules } from './redocly.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const OPENAPI = ['openapi.yaml', 'generated/openapi.json', 'generated/openapi-3.1.json']
const ASYNCAPI = ['asyncapi.yaml', 'generated/asyncapi.json']

interface Tool {
  name: string
  files: string[]
  /** The errors and warnings of the tool, one line each. */
  check(file: string): Promise<string[]>
}

/** The severity of a warning in Spectral and the AsyncAPI parser. That of an error is 0. */
const WARNING = 1
/** Spectral's parser for the YAML files and the JSON files: JSON is YAML. */
const YAML = spectralParsers.Yaml

const TOOLS: Tool[] = [
  { name: 'Redocly recommended-strict', files: [...OPENAPI, ...ASYNCAPI], check: redocly },
  { name: 'Spectral oas', files: OPENAPI, check: (file) => spectral(file, rulesets.oas) },
  {
    name: 'Spectral asyncapi',
    files: ASYNCAPI,
    check: (file) => spectral(file, rulesets.asyncapi),
  },
  { name: 'swagger-parser', files: OPENAPI, check: swaggerParser },
  { name: '@asyncapi/parser', files: ASYNCAPI, check: asyncapiParser },
]

let failures = 0
for (const { name, files, check } of TOOLS)
  for (const file of files) {
    const problems = await check(file)
    failures += problems.length
    console.log(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${file}`)
    for (const problem of problems) console.log(`     ${problem}`)
  }
if (failures > 0) process.exitCode = 1

async function redocly(file: string): Promise<string[]> {
  return (await lintByStrictRules(ROOT, file)).map(formatProblem)
}

async function spectral(file: string, ruleset: unknown): Promise<string[]> {
  const linter = new spectralCore.Spectral()
  linter.setRuleset({ extends: [ruleset as spectralCore.RulesetDefinition] })
  const document = new spectralCore.Document(await read(file), YAML, join(ROOT, file))
  return listProblems(await linter.run(document))
}

async function swaggerParser(file: string): Promise<string[]> {
  return SwaggerParser.validate(join(ROOT, file)).then(
    () => [],
    (error: Error) => [error.message],
  )
}

/** Passes no path, so a reference to another file fails, as for a tool that downloads only this
 *  file. */
async function asyncapiParser(file: string): Promise<string[]> {
  const { document, diagnostics } = await new Parser().parse(await read(file))
  return [...(document ? [] : ['is no AsyncAPI document']), ...listProblems(diagnostics)]
}

interface Diagnostic {
  severity: number
  code: string | number
  path: (string | number)[]
  message: string
}

function listProblems(diagnostics: Diagnostic[]): string[] {
  return diagnostics
    .filter(({ severity }) => severity <= WARNING)
    .map(({ code, path, message }) => `${path.join('.')} ${code}: ${message}`)
}

function read(file: string): Promise<string> {
  return readFile(join(ROOT, file), 'utf8')
}
