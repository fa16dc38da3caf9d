import { join } from 'node:path'
import type { Contract } from '../model/contract.ts'
import { listNames } from './files.ts'
import { HEADER } from './typescript-text.ts'

/** generated/handlers.ts: every handler by operationId. It does not compile if a handler is
 *  missing, of the wrong type, or without an operation. `files` are names without `.ts`. */
export function renderHandlerIndex({ operations }: Contract, files: string[]): string {
  const names = [...new Set([...operations.map(({ id }) => id), ...files])].sort()
  return `${HEADER}import type { Handler } from '../handlers/call.ts'
import type { OperationId } from './operations.ts'
${names.map((name) => `import { ${name} } from '../handlers/${name}.ts'`).join('\n')}

type Handlers = { [Id in OperationId]: Handler<Id> }

export const handlers: Handlers = {
${names.map((name) => `  ${name},`).join('\n')}
}
`
}

/** The file in handlers/ with the types of handlers. It serves no operation. */
const TYPES_FILE = 'call.ts'

export async function listHandlers(root: string): Promise<string[]> {
  const files = await listNames(join(root, 'handlers'))
  return files
    .filter((file) => file.endsWith('.ts') && file !== TYPES_FILE)
    .map((file) => file.slice(0, -'.ts'.length))
}
