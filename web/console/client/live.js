/** The requests of htmx: periodic reloads, and parts of the page that the user opens. */
import { announce, closeAnnouncement } from './announce.js'

const isPeriodic = ({ sourceEvent }) => sourceEvent?.type === 'every'

// Pauses periodic reloads while the page is hidden, a dialog is open, a form is being sent, or the
// user reads details inside the reloading element. Also drops a response that arrives during a pause.
for (const name of ['htmx:config:request', 'htmx:before:swap'])
  document.addEventListener(name, (event) => {
    const { ctx } = event.detail
    if (!isPeriodic(ctx) || !isPaused(ctx.sourceElement)) return
    event.preventDefault()
    if (!document.hidden && Date.now() - updatedAt > STALE_AFTER_MS)
      showStale('Updates are paused while you read.')
  })

function isPaused(element) {
  return (
    document.hidden ||
    document.querySelector(':popover-open, dialog[open]') !== null ||
    element.querySelector('.opened, details[open], [aria-busy], td input:checked') !== null
  )
}

// A field that the response replaces keeps what the user has entered since the request. If the response has
// another value than the request, it is a field of another group: the request has removed one before it.
document.addEventListener('htmx:before:swap', ({ detail: { ctx, tasks } }) => {
  const sent = ctx.request.body
  if (!sent) return
  for (const { fragment } of tasks)
    for (const field of fragment.querySelectorAll('input[id], textarea[id], select[id]')) {
      const { name, value } = document.getElementById(field.id) ?? {}
      const { value: loaded } = field
      if (name !== field.name || sent.get(name) !== loaded) continue
      field.value = value
      // The response does not offer the option any more.
      if (field.value !== value) field.value = loaded
    }
})

const NO_CONNECTION = 'No connection.'
const STALE_AFTER_MS = 30_000
let updatedAt = Date.now()

function showStale(reason) {
  const timeZone = document.body.dataset.zone
  const digits = { hour: '2-digit', minute: '2-digit', second: '2-digit' }
  const format = { ...digits, timeZone, timeZoneName: 'short' }
  const time = new Date(updatedAt).toLocaleTimeString('en-GB', format)
  document.getElementById('stale').textContent = `${reason} Last update: ${time}.`
}

document.addEventListener('htmx:after:request', ({ detail: { ctx } }) => {
  if (!isPeriodic(ctx) || ctx.response.status >= 400) return
  updatedAt = Date.now()
  document.getElementById('stale').textContent = ''
})

for (const name of ['htmx:error', 'htmx:response:error'])
  document.addEventListener(name, ({ detail: { ctx } }) => {
    if (!ctx) return
    if (isPeriodic(ctx))
      return showStale(navigator.onLine ? 'The server does not respond.' : NO_CONNECTION)
    announce(
      'bad',
      navigator.onLine ? 'This did not load. Try again.' : `${NO_CONNECTION} Try again.`,
    )
  })

// A page that becomes visible is brought up to date at once.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return
  for (const element of document.querySelectorAll('[hx-trigger^="every"]'))
    element.dispatchEvent(new CustomEvent('every'))
})

document.addEventListener('htmx:before:request', ({ detail: { ctx } }) => {
  if (isPeriodic(ctx)) return
  closeAnnouncement()
  ctx.sourceElement.ariaBusy = 'true'
})
document.addEventListener('htmx:finally:request', ({ detail: { ctx } }) => {
  if (!isPeriodic(ctx)) ctx.sourceElement.ariaBusy = null
})
