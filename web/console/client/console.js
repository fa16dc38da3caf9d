/** Browser behaviour of the console: copying, showing passwords, live times, chart tooltips. */
import { relative, remaining } from './times.js'

document.documentElement.classList.add('js')

document.addEventListener('click', async (event) => {
  const button = event.target.closest?.('[data-copy]')
  if (!button) return
  await navigator.clipboard.writeText(button.dataset.copy)
  button.classList.add('copied')
  setTimeout(() => button.classList.remove('copied'), 1_500)
})

document.addEventListener('click', (event) => {
  const button = event.target.closest?.('[data-reveal]')
  if (!button) return
  const input = button.previousElementSibling
  const isHidden = input.type === 'password'
  input.type = isHidden ? 'text' : 'password'
  button.firstChild.data = isHidden ? 'Hide' : 'Show'
})

function updateTimes() {
  for (const time of document.querySelectorAll('time[datetime]')) {
    const ms = Date.parse(time.dateTime) - Date.now()
    const text = 'countdown' in time.dataset ? remaining(ms) : relative(ms)
    if (time.textContent !== text) time.textContent = text
  }
}
updateTimes()
setInterval(updateTimes, 1_000)

// Pauses periodic reloads while the page is hidden, a dialog is open, or the user reads details
// inside the reloading element. Also drops a response that arrives during a pause.
for (const name of ['htmx:config:request', 'htmx:before:swap'])
  document.addEventListener(name, (event) => {
    const { sourceElement, sourceEvent } = event.detail.ctx
    if (sourceEvent.type !== 'every') return
    if (
      document.hidden ||
      document.querySelector(':popover-open') ||
      sourceElement.querySelector('.opened, details[open]')
    )
      event.preventDefault()
  })

// Shows the values of a chart's bar beside the pointer. The chart's table has the same values.
const tip = Object.assign(document.createElement('div'), {
  className: 'tip',
  hidden: true,
  ariaHidden: 'true',
})
document.body.append(tip)
document.addEventListener('pointermove', ({ target, clientX, clientY }) => {
  tip.hidden = !target.dataset?.tip
  if (tip.hidden) return
  tip.textContent = target.dataset.tip
  tip.style.left = `${Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8)}px`
  tip.style.top = `${Math.max(8, clientY - tip.offsetHeight - 12)}px`
})

// A double click must not submit a form twice. The first response would be lost, and it may contain
// a secret that is shown once.
const RESUBMIT_AFTER_MS = 5_000
document.addEventListener('submit', (event) => {
  const form = event.target
  if (form.method !== 'post' || form.hasAttribute('hx-post')) return
  if (form.dataset.sent !== undefined) event.preventDefault()
  form.dataset.sent = ''
  setTimeout(() => delete form.dataset.sent, RESUBMIT_AFTER_MS)
})
