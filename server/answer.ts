/** From what a handler made to what is sent: status, headers, text, all held to the contract. */
import { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import type { Operation, OperationId } from '../generated/operations.ts'
import { responses } from '../generated/validators.js'
import type { Config } from './config.ts'
import { etagOf, ifNoneMatchHolds } from './etag.ts'

export interface AnswerServices {
  config: Pick<Config, 'validateResponses'>
  log: Logger
  /** Called for each answer that breaks the contract. */
  onViolation?: (operationId: OperationId) => void
}

/** Turns the handler's body into the answer. Throws `ContractViolation` when that is to be enforced. */
export function answer(services: AnswerServices, id: OperationId, operation: Operation, ctx: Context): void {
  if (ctx.body instanceof Readable) return
  const record: unknown = ctx.body
  if (operation.success === 204) {
    ctx.body = null
    ctx.status = 204
  } else {
    const text = JSON.stringify(record)
    if (operation.etag) ctx.set('ETag', etagOf(text))
    if (operation.location) ctx.set('Location', `${ctx.path}/${(record as { id: string }).id}`)
    sendJson(ctx, operation.success, text)
    if (operation.access === 'read' && isKnown(ctx)) {
      ctx.body = null
      ctx.status = 304
    }
  }
  if (isChecked(services.config, id)) assertContract(services, id, ctx, record)
}

function isKnown(ctx: Context): boolean {
  const known = ctx.get('If-None-Match')
  const etag = ctx.response.get('ETag')
  return known !== '' && etag !== '' && ifNoneMatchHolds(known, etag)
}

export function sendJson(ctx: Context, status: number, text: string): void {
  ctx.state.responseText = text
  ctx.status = status
  // Set before the body, or Koa adds a charset, which JSON does not have (RFC 8259 §11).
  ctx.set('Content-Type', 'application/json')
  ctx.body = text
}

/** Where violations are only logged, a sample will find them: checking a page of 25 costs as much as fetching it. */
const CHECKS_PER_SECOND = 10
const checks = new Map<OperationId, { second: number; count: number }>()

function isChecked({ validateResponses }: AnswerServices['config'], id: OperationId): boolean {
  if (validateResponses !== 'log') return validateResponses === 'enforce'
  const second = Math.floor(Date.now() / 1000)
  const known = checks.get(id)
  const count = known?.second === second ? known.count + 1 : 1
  checks.set(id, { second, count })
  return count <= CHECKS_PER_SECOND
}

/** The answer breaks the contract: our mistake. */
class ContractViolation extends Error {
  override name = 'ContractViolation'
}

function assertContract({ config, log, onViolation }: AnswerServices, id: OperationId, ctx: Context, record: unknown): void {
  const problem = problemOf(id, ctx, record)
  if (problem === undefined) return
  onViolation?.(id)
  const { pointer, message } = problem
  if (config.validateResponses === 'enforce') throw new ContractViolation(`${id} ${ctx.status}: ${pointer} ${message}`)
  log.error(
    { operationId: id, status: ctx.status, pointer, problem: message, requestId: ctx.state.requestId },
    'A response breaks the contract',
  )
}

function problemOf(id: OperationId, ctx: Context, record: unknown): { pointer: string; message: string } | undefined {
  const expected = responses[id][ctx.status]
  if (expected === undefined) return { pointer: '', message: `status ${ctx.status} is not in the contract` }
  const parts = [
    { validator: expected.headers, value: ctx.response.headers as unknown, root: '/headers' },
    { validator: ctx.body === null ? null : expected.body?.['application/json'], value: record, root: '' },
  ]
  for (const { validator, value, root } of parts) {
    if (!validator || validator(value)) continue
    const error = validator.errors?.[0]
    return {
      pointer: `${root}${error?.instancePath ?? ''}`,
      message: `${error?.message ?? 'is not valid'} ${JSON.stringify(error?.params ?? {})}`,
    }
  }
  return undefined
}
