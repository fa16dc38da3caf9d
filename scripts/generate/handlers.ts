import type { Contract } from './contract.ts'
import { HEADER } from './text.ts'

/** generated/handlers.ts: every handler by operationId. Its compilation shows which are missing, of the wrong type, or left over.
 *  `files` are the names of the modules in handlers/ without `.ts`: a left-over one is listed too, which `satisfies` refuses. */
export function handlers({ operations }: Contract, files: string[]): string {
  const names = [...new Set([...operations.map(({ id }) => id), ...files])].sort()
  return `${HEADER}import type { Handler } from '../operations/context.ts'
import type { OperationId } from './operations.ts'
${names.map((name) => `import { ${name} } from '../handlers/${name}.ts'`).join('\n')}

type Handlers = { [Id in OperationId]: Handler<Id> }

export const handlers = {
${names.map((name) => `  ${name},`).join('\n')}
} satisfies Handlers
`
}
