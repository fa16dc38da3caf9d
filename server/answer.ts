/** From what a handler made to what is sent: status, headers, text, all held to the contract. */
import { Readable } from 'node:stream'
import type { Context, Next } from 'koa'
import type { Logger } from 'pino'
import {
  type FileBody,
  type Operation,
  type OperationId,
  operations,
} from '../generated/operations.ts'
import { responses } from '../generated/validators.js'
import type { Config } from './config.ts'
import { etagOf, ifNoneMatchHolds } from './etag.ts'
import { HEADERS, type Problem, problemIn, type Violation } from './violations.ts'

export interface AnswerServices {
  config: Pick<Config, 'validateResponses'>
  log: Logger
  /** Called for each answer that breaks the contract. */
  onViolation?: (violation: Violation) => void
}

/** Turns the handler's result into the response. Throws `ContractViolation` when that is to be enforced. */
export function answer(
  services: AnswerServices,
  id: OperationId,
  ctx: Context,
  result: unknown,
): void {
  const operation: Operation = operations[id]
  if (isFile(result)) {
    // Before the body, or Koa adds a charset.
    ctx.set(result.headers)
    ctx.status = operation.success
    ctx.body = result.stream
    return
  }
  if (operation.success === 204) {
    ctx.body = null
    ctx.status = 204
  } else {
    const text = JSON.stringify(result)
    if (operation.etag) ctx.set('ETag', etagOf(text))
    if (operation.location) ctx.set('Location', `${ctx.path}/${(result as { id: string }).id}`)
    sendJson(ctx, operation.success, text)
    if (operation.access === 'read' && operation.etag && isKnown(ctx)) {
      ctx.body = null
      ctx.status = 304
    }
  }
  if (isChecked(services.config, id)) assertContract(services, id, ctx, result)
}

function isFile(result: unknown): result is FileBody {
  return (result as FileBody | undefined)?.stream instanceof Readable
}

function isKnown(ctx: Context): boolean {
  const known = ctx.get('If-None-Match')
  return known !== '' && ifNoneMatchHolds(known, ctx.response.get('ETag'))
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

/** Never leaves development: it stands for a handler that is still to be written. */
const NOT_IMPLEMENTED = 501

/** Koa middleware around what answers errors: they, too, are held to the contract. Throws `ContractViolation` when that is to be enforced. */
export function checkErrors(services: AnswerServices) {
  return async (ctx: Context, next: Next): Promise<void> => {
    await next()
    const id: OperationId | undefined = ctx.state.operationId
    if (
      id === undefined ||
      ctx.status < 400 ||
      ctx.status === NOT_IMPLEMENTED ||
      !isChecked(services.config, id)
    )
      return
    if (typeof ctx.body === 'string') assertContract(services, id, ctx, JSON.parse(ctx.body))
  }
}

function assertContract(
  { config, log, onViolation }: AnswerServices,
  id: OperationId,
  ctx: Context,
  record: unknown,
): void {
  const found = problemOf(id, ctx, record)
  if (found === undefined) return
  onViolation?.({ operation: id, status: ctx.status, ...found })
  const { pointer, problem } = found
  if (config.validateResponses === 'enforce')
    throw new ContractViolation(`${id} ${ctx.status}: ${pointer} ${problem}`)
  log.error(
    { operationId: id, status: ctx.status, pointer, problem, requestId: ctx.state.requestId },
    'A response breaks the contract',
  )
}

function problemOf(id: OperationId, ctx: Context, record: unknown): Problem | undefined {
  const expected = responses[id][ctx.status]
  if (expected === undefined)
    return { pointer: '', problem: `status ${ctx.status} is not in the contract` }
  const parts = [
    { validator: expected.headers, value: ctx.response.headers as unknown, root: HEADERS },
    {
      validator: ctx.body === null ? null : expected.body?.['application/json'],
      value: record,
      root: '',
    },
  ]
  for (const { validator, value, root } of parts)
    if (validator && !validator(value)) return problemIn(validator.errors, root)
  return undefined
}
