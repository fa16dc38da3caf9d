/** The fields of a webhook, as options of commands. */
import { type Command, Option } from 'commander'
import { Refused } from '../errors.ts'
import { eventTypes, operationalTypes } from '../generated/events.ts'
import { parseName } from '../records/names.ts'
import { isEventType, orderings, simplifyEventTypes } from '../records/subscriptions.ts'
import type { Config } from '../server/config.ts'
import { assertHeader, parseHeaderLines } from '../webhooks/transport/custom-headers.ts'
import { parseWebhookUrl, UnpermittedUrl } from '../webhooks/transport/egress.ts'
import { UsageError } from './shell.ts'

export const URL_MEANING =
  'the URL to send events to: https, or http to an IP address in WEBHOOK_ALLOW_ADDRESSES'

export function newOrderingOption(): Option {
  return new Option(
    '--ordering <ordering>',
    'by_resource: send the events of each resource in order, each after the previous one is delivered or failed',
  ).choices(orderings)
}

/** Adds `--header`, which can be repeated. */
export function addHeaderOption(command: Command): Command {
  return command.option(
    '--header <line>',
    "a header of each request, for example 'X-Api-Key: value'; can be repeated",
    collect,
  )
}

export const collect = (value: string, previous: string[] = []): string[] => [...previous, value]

/** The values by name. Throws `Refused`. */
export function readHeaders(lines: string[]): Record<string, string> {
  const headers = parseHeaderLines(lines)
  for (const [name, value] of Object.entries(headers)) assertHeader(name, value)
  return headers
}

/** Returns the description trimmed; it may be empty. Throws `Refused` when it is too long or
 *  contains control characters. */
export function readDescription(text: string): string {
  return text.trim() === '' ? '' : parseName('The description', text)
}

/** Throws `Refused` for an unusable URL. If a setting can permit the URL, the message names the
 *  setting. */
export function readWebhookUrl(text: string, { webhookAllowedRanges }: Config): string {
  try {
    return parseWebhookUrl(text, webhookAllowedRanges)
  } catch (error) {
    if (!(error instanceof UnpermittedUrl)) throw error
    throw new Refused(
      `${error.message}\nTo permit IP addresses that are not public, and http to them, set ` +
        'WEBHOOK_ALLOW_ADDRESSES for this command and for the service. For example, to permit this machine:\n' +
        '  export WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8',
      { cause: error },
    )
  }
}

/** `*` stands for all event types but the operational ones, including ones added later. */
export function parseEventTypes(list: string): string[] {
  const types = list.split(',').map((type) => type.trim())
  const unknown = types.find((type) => type !== '*' && !isEventType(type))
  if (unknown !== undefined)
    throw new UsageError(
      `option '--events <list>': "${unknown}" is not an event type. ` +
        `Use one of ${Object.keys({ ...eventTypes, ...operationalTypes }).join(', ')}, ` +
        "or '*' for all but muster.*.",
    )
  return simplifyEventTypes(types)
}
