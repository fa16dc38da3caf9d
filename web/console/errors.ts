/** The pages and notices for errors. */
import { HttpError } from 'http-errors'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { InvalidInput, Refused, StatusError } from '../../errors.ts'
import { isUnavailable, OutcomeUnknown } from '../../records/database/errors.ts'
import { maskInvitation } from '../shared/invitation-path.ts'
import { errorPage } from './layout.ts'
import { type ConsolePage, type PageResult, redirect } from './page.ts'
import { errorText } from './records/labels.ts'
import { refererPath } from './return-path.ts'

type Text = [title: string, text: string]

/** The texts for errors that bring no text for users, by status. `Refused`, `InvalidInput` and
 *  `StatusError` bring their own. */
const TEXTS: Record<number, Text> = {
  403: [
    'Request from another site',
    'Another site sent this request, so nothing was done. Open the console and try again.',
  ],
  404: [
    'Page not found',
    'This page does not exist, or you don’t have access. The search finds records, events and ' +
      'keys by their name or ID.',
  ],
  413: ['Form too large', 'The form is too large or has too many fields.'],
  429: [
    'Too many forms',
    'You sent too many forms within a minute, and this one was not stored. ' +
      'Wait a minute, go back, and send it again.',
  ],
  500: [
    'Something went wrong',
    'The error is on our side. If you were making a change, check whether it was saved.',
  ],
  503: ['Temporarily unavailable', 'Try again in a few seconds.'],
}
const OUTCOME_UNKNOWN: Text = [
  'Your change may have been made',
  'The database did not confirm it. Look at the record before you try again.',
]
const OTHER_ERROR = 'This did not work'

/** Logs unexpected errors. A refused action of a signed-in user becomes a notice on the page of the
 *  form. The header `Muster-Outcome` tells a script that sent a form whether the change may have been
 *  made. */
export function toErrorResult(log: Logger, ctx: Context, error: unknown): PageResult {
  ctx.set('Muster-Outcome', mayHaveChanged(ctx, error) ? 'unknown' : 'unchanged')
  if (error instanceof Refused || error instanceof InvalidInput) {
    const text = error instanceof InvalidInput ? errorText(error) : error.message
    return ctx.method === 'POST' && ctx.state.visitor && !isFromScript(ctx)
      ? redirect(refererPath(ctx), text, 'bad')
      : errorPage(422, OTHER_ERROR, text)
  }
  if (error instanceof StatusError) {
    ctx.set(error.headers)
    return errorPage(error.status, OTHER_ERROR, error.message)
  }
  if (error instanceof HttpError && error.expose) {
    ctx.set(error.headers ?? {})
    return statusPage(ctx, error.status, error.message)
  }
  log.error(
    {
      err: error,
      requestId: ctx.state.requestId,
      method: ctx.method,
      path: maskInvitation(ctx.path),
    },
    'A page of the console failed',
  )
  if (!isUnavailable(error)) return statusPage(ctx, 500)
  return mayHaveChanged(ctx, error) && ctx.method === 'POST'
    ? textPage(ctx, 503, OUTCOME_UNKNOWN)
    : statusPage(ctx, 503)
}

/** The change may be committed, while a later step failed, such as storing the notice. Nobody knows
 *  what an unexpected error has left. */
function mayHaveChanged(ctx: Context, error: unknown): boolean {
  if (ctx.state.hasChanged || error instanceof OutcomeUnknown) return true
  const isExpected =
    error instanceof Refused ||
    error instanceof InvalidInput ||
    error instanceof StatusError ||
    (error instanceof HttpError && error.expose)
  return !isExpected && !isUnavailable(error)
}

/** See client/submit.js. */
function isFromScript(ctx: Context): boolean {
  return ctx.get('Muster-Form') !== '' || ctx.get('HX-Request') !== ''
}

function statusPage(ctx: Context, status: number, message = ''): ConsolePage {
  return textPage(ctx, status, TEXTS[status] ?? [OTHER_ERROR, message])
}

function textPage(ctx: Context, status: number, [title, text]: Text): ConsolePage {
  const report = status >= 500 && ` To report it, give us the request ID ${ctx.state.requestId}.`
  return errorPage(status, title, [text, report])
}
