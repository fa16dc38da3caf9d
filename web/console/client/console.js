/** Browser behaviour of the console: copying, showing passwords, live times, chart tooltips. */
import './combobox.js'
import './keys.js'
import './live.js'
import './submit.js'
import { relative, remaining } from './times.js'

document.documentElement.classList.add('js')

// The next page shows its times in the time zone of this browser: see time-zone.ts.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
// biome-ignore lint/suspicious/noDocumentCookie: plain HTTP has no Cookie Store API.
document.cookie = `muster-detected-zone=${timeZone}; path=/; max-age=31536000; samesite=lax`

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

document.addEventListener('input', ({ target }) => {
  const shown = target.type === 'datetime-local' && target.labels[0]?.querySelector('.shown-time')
  if (shown) shown.textContent = target.value.slice(0, 16).replace('T', ' ')
})

// The rows that are selected in a list. The style sheet shows the buttons for them.
document.addEventListener('change', ({ target }) => {
  const rows = [...document.querySelectorAll('tbody input[form="selection"]')]
  const all = document.querySelector('[data-select-all]')
  if (target.getAttribute('form') !== 'selection') return
  if (target === all) for (const row of rows) row.checked = all.checked
  const selected = rows.filter((row) => row.checked).length
  all.checked = selected === rows.length
  all.indeterminate = selected > 0 && !all.checked
  document.getElementById('selected-count').textContent = `${selected} selected`
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
