/** Checks of the spellings of query parameters that take several values: `x-list-parameters`. */
import type { Operation } from '../../model/operations.ts'
import { inlineReferences } from '../../model/references.ts'
import { readListParameters } from '../../words/list-parameters.ts'
import { type Check, newRequest, parametersIn, type Run } from '../run.ts'
import { isValid } from '../values/validity.ts'
import { assertAccepted, assertRefused } from './refused.ts'

const UNKNOWN_OPTION = 'no-such-option'

export function* spellingChecks(run: Run, operation: Operation, path: string): Generator<Check> {
  const words = readListParameters(run.contract)
  if (words === undefined || operation.method !== 'get') return
  for (const { name, schema } of parametersIn(operation, 'query')) {
    const { type, items } = inlineReferences(run.contract.sources, schema)
    const [option] = items?.enum ?? []
    if (type !== 'array' || option === undefined) continue
    const ask = (as: string, value: string) =>
      newRequest(run, operation, path, { query: { [as]: value } })
    const tested = () => run.tested('openapi.yaml', 'x-list-parameters')
    if (words.spaces === 'ignored')
      yield {
        what: `${name} with spaces around the value`,
        async perform() {
          await assertAccepted(run, operation, ask(name, ` ${option} `), 'with spaces')
          tested()
        },
      }
    if (words.also_with !== undefined) {
      const other = `${name}${words.also_with}`
      yield {
        what: other,
        async perform() {
          await assertAccepted(run, operation, ask(other, String(option)), other)
          if (items && !isValid(items, UNKNOWN_OPTION))
            await assertRefused(run, operation, ask(other, UNKNOWN_OPTION), {
              fields: [other],
              why: 'an error names the parameter as it was sent',
            })
          tested()
        },
      }
    }
  }
}
