import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { formatProblem, lint } from '../../scripts/lint/lint.ts'
import { lintByRedocly } from '../../scripts/lint/redocly.ts'
import { newMuster } from '../cli/muster.ts'
import { ROOT } from '../repository.ts'
import { CASES, type Case, FATAL } from './lint-cases.ts'

async function newContract() {
  const root = await mkdtemp(join(tmpdir(), 'lint-'))
  const texts: Record<string, string> = {}
  for (const file of ['openapi.yaml', 'asyncapi.yaml'])
    texts[file] = await readFile(join(ROOT, file), 'utf8')
  return {
    root,
    texts,
    change({ file = 'openapi.yaml', change: [from, to], after = '' }: Omit<Case, 'name' | 'want'>) {
      const text = texts[file] ?? ''
      const start = text.indexOf(after)
      const index = text.indexOf(from, start)
      expect({ from, isThere: start >= 0 && index >= 0 }).toEqual({ from, isThere: true })
      texts[file] = text.slice(0, index) + to + text.slice(index + from.length)
    },
    write: () =>
      Promise.all(Object.entries(texts).map(([file, text]) => writeFile(join(root, file), text))),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}

test('the contract of this service has no problems', async () => {
  expect((await lint(ROOT)).map(formatProblem)).toEqual([])
})

test('reports each defect once, with its rule, its line and the remedy', async () => {
  await using contract = await newContract()
  for (const defect of CASES) contract.change(defect)
  await contract.write()
  const problems = (await lint(contract.root)).map(formatProblem)
  const unexpected = new Set(problems)
  for (const { name, change, want, also, ...place } of CASES) {
    const { file = 'openapi.yaml', line = change[1], after = '', lineAfter = after } = place
    const text = contract.texts[file] ?? ''
    const lineNumber = text
      .slice(0, text.indexOf(line, text.indexOf(lineAfter) + lineAfter.length))
      .split('\n').length
    const found = problems.filter((problem) => problem.includes(` ${want}`))
    const start = line === '' ? '' : `${file}:${lineNumber}:`
    expect(found, `${name}\n${problems.join('\n')}`).toEqual([expect.stringMatching(`^${start}`)])
    for (const problem of problems)
      if (found.includes(problem) || (also && problem.includes(` ${also}`)))
        unexpected.delete(problem)
  }
  expect([...unexpected]).toEqual([])
})

const GUIDE = `# A guide
[To the README](../README.md#the-start), [to a heading](#two-words), [to the contract](../openapi.yaml)
and [to another site](https://example.com/docs/none.md). \`getTask\` and getTasks in a sentence are fine.
[No file](none.md), [no heading](#two-word) and [no heading of the README](../README.md#start).
Call \`getTasks\`.
\`\`\`sh
muster contract --only createTasks   # [not](a-link.md)
\`\`\`
## Two \`words\`
Call \`getTsk\` or \`gettask\`, not \`getTask2\`, \`getTaskPage\` or \`get\`.
`

const EXAMPLE = `# An example
\`\`\`yaml
  operationId: getTesk
  operationId: getTasks
\`\`\`
\`getTesk\` and \`getTasks\` are operations of the example.
`

test('reports unknown operation IDs and broken links in guides and READMEs', async () => {
  await using contract = await newContract()
  await contract.write()
  await mkdir(join(contract.root, 'docs'))
  await writeFile(join(contract.root, 'docs/guide.md'), GUIDE)
  await writeFile(join(contract.root, 'README.md'), '# Name\n## The start\n[Folder](docs)\n')
  await writeFile(join(contract.root, 'docs/example.md'), EXAMPLE)
  await mkdir(join(contract.root, 'handlers'))
  await writeFile(join(contract.root, 'handlers/getTask.ts'), 'const getTask2 = 1\n')
  await writeFile(
    join(contract.root, 'CHANGELOG.md'),
    '`getTasks`: [why](docs/guide.md#one) [100%](100%.md)\n',
  )
  expect((await lint(contract.root)).map(formatProblem)).toEqual([
    'docs/guide.md:4:11 broken-link — docs/none.md does not exist: link to another file, for example docs/guide.md',
    'docs/guide.md:4:34 broken-link — docs/guide.md has no heading #two-word: link to #two-words, or add the heading',
    'docs/guide.md:4:76 broken-link — README.md has no heading #start: link to #the-start, or add the heading',
    'docs/guide.md:5:7 unknown-operation — openapi.yaml has no operation getTasks: write getTask, or remove the mention',
    'docs/guide.md:7:24 unknown-operation — openapi.yaml has no operation createTasks: write createTask, or remove the mention',
    'docs/guide.md:10:7 unknown-operation — openapi.yaml has no operation getTsk: did you mean getTask?',
    'docs/guide.md:10:19 unknown-operation — openapi.yaml has no operation gettask: did you mean getTask?',
    'CHANGELOG.md:1:19 broken-link — docs/guide.md has no heading #one: link to #two-words, or add the heading',
    'CHANGELOG.md:1:45 broken-link — 100%.md has a % that begins no escape: write %25',
  ])
})

test('reports statuses that no handler gives, and fields whose columns cannot be null', async () => {
  await using contract = await newContract()
  for (const operation of ['getTask', 'getJob', 'getExport'])
    contract.change({
      after: `operationId: ${operation}\n`,
      change: [
        "        '414'",
        "        '410': { $ref: '#/components/responses/NotFound' }\n        '414'",
      ],
    })
  contract.change({
    after: '    Task:\n',
    change: ['        title:\n', '        title:\n          nullable: true\n'],
  })
  await contract.write()
  const write = async (file: string, text: string): Promise<void> => {
    await mkdir(dirname(join(contract.root, file)), { recursive: true })
    await writeFile(join(contract.root, file), text)
  }
  await write('handlers/getTask.ts', "throw new StatusError(404, '410 Gone')\n")
  await write('handlers/getJob.ts', "import { throwGone } from '../records/gone.ts'\n")
  await write('records/gone.ts', "throw new StatusError(410, 'It is gone.')\n")
  await write('handlers/getExport.ts', "export const getExport = notImplemented('getExport')\n")
  const schema = await readFile(join(ROOT, 'records/schema.sqlite.json'), 'utf8')
  await write('records/schema.sqlite.json', schema)
  expect((await lint(contract.root)).map(formatProblem)).toEqual([
    expect.stringMatching(
      /^openapi\.yaml:\d+:9 in-code — handlers\/getTask\.ts throws no StatusError with 410: throw it, or remove the status here$/,
    ),
    expect.stringMatching(
      /^openapi\.yaml:\d+:11 in-code — title can be null, but the column tasks\.title cannot: remove nullable, or change the column in a migration$/,
    ),
  ])
})

test.each(FATAL)('reports $name', async (defect) => {
  await using contract = await newContract()
  contract.change(defect)
  await contract.write()
  expect((await lint(contract.root)).map(formatProblem)).toContainEqual(
    expect.stringMatching(defect.want),
  )
})

test('muster lint exits with 0 without problems, or prints each problem and exits with 1', async () => {
  await using muster = await newMuster()
  await using contract = await newContract()
  await contract.write()
  expect(await muster.run(['lint', contract.root])).toMatchObject({
    status: 0,
    stdout: 'openapi.yaml and asyncapi.yaml have no problems.\n',
  })
  contract.change({ change: ['operationId: getTask\n', 'operationId: task\n'] })
  await contract.write()
  const { status, stdout } = await muster.run(['lint', contract.root])
  expect({ status, stdout }).toEqual({
    status: 1,
    stdout: expect.stringMatching(/^openapi\.yaml:\d+:7 operation-id-form — .*\n\n1 problem\n$/),
  })
  const document = JSON.parse((await muster.run(['lint', contract.root, '--json'])).stdout)
  expect(document.problems).toMatchObject([
    { file: 'openapi.yaml', column: 7, rule: 'operation-id-form' },
  ])
  expect(document.results).toMatchObject([
    { level: 'error', file: 'openapi.yaml', rule: 'operation-id-form' },
  ])
  expect((await muster.run(['lint', contract.root, '--github'])).stdout).toMatch(
    /\n::error file=openapi\.yaml,line=\d+,title=operation-id-form::operationId task must be/,
  )
})

test('reports each of more than a thousand problems', async () => {
  const root = await mkdtemp(join(tmpdir(), 'lint-'))
  const paths = Array.from({ length: 1_100 }, (_, index) => `  /${index}: { get: {} }`)
  const info = "info: { title: Pets, version: '1' }"
  await writeFile(
    join(root, 'openapi.yaml'),
    ['openapi: 3.0.3', info, 'paths:', ...paths, ''].join('\n'),
  )
  await writeFile(join(root, 'asyncapi.yaml'), `asyncapi: 3.0.0\n${info}\n`)
  const problems = await lintByRedocly(root).finally(() => rm(root, { recursive: true }))
  const ofPaths = problems.filter(({ rule }) => rule === 'struct')
  expect(new Set(ofPaths.map(({ line }) => line)).size).toBe(paths.length)
})

test('says why Redocly cannot run', async () => {
  await expect(lintByRedocly('/none/such')).rejects.toThrow(
    /^redocly could not check openapi\.yaml and asyncapi\.yaml: .*none\/such/s,
  )
})

test("does not run the plugins of the folder's redocly.yaml", async () => {
  await using contract = await newContract()
  await contract.write()
  const file = join(contract.root, 'plugin-ran')
  const plugin = `require('node:fs').writeFileSync(${JSON.stringify(file)}, '')`
  await writeFile(join(contract.root, 'plugin.cjs'), `${plugin}\nmodule.exports = { id: 'own' }\n`)
  await writeFile(join(contract.root, 'redocly.yaml'), "plugins: ['./plugin.cjs']\n")
  expect((await lint(contract.root)).map(formatProblem)).toEqual([])
  await expect(readFile(file)).rejects.toThrow('ENOENT')
})

test.each([
  ['a reference', 'x-notes: { $ref: URL }'],
  ['a reference in an example', 'x-notes: { examples: [{ value: { $ref: URL } }] }'],
  ['an external example', 'x-notes: { externalValue: URL }'],
  ['a discriminator', 'x-notes: { discriminator: { propertyName: a, mapping: { b: URL } } }'],
])('refuses the URL of %s, and sends no request to it', async (_, line) => {
  let requests = 0
  const server = createServer((_request, response) => {
    requests += 1
    response.end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  await using _server = { [Symbol.asyncDispose]: () => promisify(server.close.bind(server))() }
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/notes.yaml`
  await using contract = await newContract()
  contract.change({
    change: ['\npaths:\n', `\n${line.replace('URL', `'${url}'`)}\npaths:\n`],
  })
  await contract.write()
  expect((await lint(contract.root)).map(formatProblem)).toEqual([
    expect.stringMatching(
      /^openapi\.yaml:\d+:\d+ generates — refers to http:\S+: refer to openapi\.yaml or asyncapi\.yaml only$/,
    ),
  ])
  expect(requests).toBe(0)
})

test.each([
  "'%6Fpenapi.yaml#/info'",
  "'http://127.0.0.1:9/../../openapi.yaml#/info'",
  "'x/../openapi.yaml#/info'",
  "'openapi.yaml#.yaml'",
])('refuses %s, which another program could read as another file', async (reference) => {
  await using contract = await newContract()
  contract.change({
    change: ['\npaths:\n', `\nx-notes: { $ref: ${reference} }\npaths:\n`],
  })
  await contract.write()
  expect((await lint(contract.root)).map(formatProblem)).toEqual([
    expect.stringMatching(/^openapi\.yaml:\d+:\d+ generates — refers to \S+: (refer to|write) /),
  ])
})

test('refuses a contract that is a link to a file outside of the folder', async () => {
  await using contract = await newContract()
  await contract.write()
  await rm(join(contract.root, 'asyncapi.yaml'))
  await symlink(join(ROOT, 'asyncapi.yaml'), join(contract.root, 'asyncapi.yaml'))
  expect((await lint(contract.root)).map(formatProblem)).toEqual([
    expect.stringMatching(/^asyncapi\.yaml:1:1 generates — is a link to \S+: copy the file to /),
  ])
})
