/** Finds what remains of operations that the contract no longer has. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findUnusedComponents } from '../model/components.ts'
import type { Contract } from '../model/contract.ts'
import { type Remark, toRemark } from '../report/result.ts'
import { listNames, listPathsBelow } from './files.ts'
import { listHandlers } from './handlers.ts'

/** A remark for each handler and test without an operation, each line of a test, hook or guide that
 *  names a removed operation, and each unused component. */
export async function findOrphans(root: string, contract: Contract): Promise<Remark[]> {
  const ids = new Set(contract.operations.map(({ id }) => id))
  const handlers = (await listHandlers(root)).filter((name) => !ids.has(name))
  // The names of other tests in this folder are in lower case.
  const tests = (await listNames(join(root, 'test/handlers')))
    .map((file) => /^([a-z]+[A-Z]\w*)\.test\.ts$/.exec(file)?.[1])
    .filter((name) => name !== undefined && !ids.has(name)) as string[]
  const removedIds = (await generatedIds(root)).filter((id) => !ids.has(id))
  const gone = new Set([...handlers, ...tests, ...removedIds])
  return [
    ...handlers.map(describeHandler),
    ...tests.map((name) => ({
      file: `test/handlers/${name}.test.ts`,
      line: null,
      message: 'tests no operation: remove it, or rename it with its operation',
    })),
    ...(await findMentions(
      root,
      gone,
      new Set(tests.map((name) => `test/handlers/${name}.test.ts`)),
    )),
    ...findUnusedComponents(contract).map(toRemark),
  ]
}

function describeHandler(name: string): Remark {
  const message = 'serves no operation: remove it, or rename it with its operation'
  return { file: `handlers/${name}.ts`, line: null, message }
}

/** The operation IDs in generated/operations.ts, which still has the operations that were removed
 *  since it was written. */
async function generatedIds(root: string): Promise<string[]> {
  const text = await readFile(join(root, 'generated/operations.ts'), 'utf8').catch(() => '')
  const union = /^export type OperationId =((?:\n {2}\| '\w+')*)/m.exec(text)?.[1] ?? ''
  return [...union.matchAll(/'(\w+)'/g)].map(([, id]) => id ?? '')
}

/** A remark for each line of a test, hook or guide that has one of `names`. Skips the files
 *  `except`. */
async function findMentions(
  root: string,
  names: Set<string>,
  except: Set<string>,
): Promise<Remark[]> {
  if (names.size === 0) return []
  const pattern = new RegExp(`\\b(${[...names].join('|')})\\b`)
  const files = await listPathsBelow(root, ['test', 'scripts/contract', 'docs'])
  const found = await Promise.all(
    files
      .filter((file) => /\.([cm]?[jt]s|md)$/.test(file) && !except.has(file))
      .map(async (file) => {
        const lines = (await readFile(join(root, file), 'utf8')).split('\n')
        return lines.flatMap((line, index) => {
          const name = pattern.exec(line)?.[1]
          const message = `names ${name}, which is no operation: remove it, or rename it`
          return name === undefined ? [] : [{ file, line: index + 1, message }]
        })
      }),
  )
  return found.flat()
}
