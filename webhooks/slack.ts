/** The bodies of messages to Slack-compatible incoming webhooks.
 *  https://docs.slack.dev/messaging/formatting-message-text */

/** Slack cuts texts after 40,000 characters. */
const MAX_LINES = 20
const MAX_LINE_LENGTH = 500

interface Link {
  text: string
  url: string
}

/** One line for each text. The further ones are only counted. */
export function slackBody(texts: (string | Link)[]): Buffer {
  const lines = texts.slice(0, MAX_LINES).map(toLine)
  const more = texts.length - lines.length
  if (more > 0) lines.push(`… and ${more} more.`)
  return Buffer.from(JSON.stringify({ text: lines.join('\n') }))
}

function toLine(input: string | Link): string {
  if (typeof input === 'string') return escapeText(input)
  return `${escapeText(input.text.slice(0, MAX_LINE_LENGTH))} <${input.url}|Open>`
}

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
