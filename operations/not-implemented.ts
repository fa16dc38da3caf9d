/** What stands for a handler until somebody writes it. */
import type { OperationId } from '../generated/operations.ts'
import type { Handler } from './context.ts'

const standIns = new WeakSet<object>()

/** A handler that answers 501. What comes before a handler is done all the same: the key, the limit, the checks of the input. */
export function notImplemented<Id extends OperationId>(id: Id): Handler<Id> {
  const standIn: Handler<Id> = async (ctx) =>
    ctx.throw(501, `${id} is not implemented yet.`, { expose: true })
  standIns.add(standIn)
  return standIn
}

export function isNotImplemented(handler: object): boolean {
  return standIns.has(handler)
}
