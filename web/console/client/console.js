/** What the server cannot do: copying, showing a password, counting down, and saying how long ago something was while a page stays open. */

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

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** As `relative` in ui.ts says it. */
function relative(ms) {
  const size = Math.abs(ms)
  if (size < 1_000) return 'now'
  const [unit, name] =
    size < MINUTE
      ? [1_000, 's']
      : size < HOUR
        ? [MINUTE, 'min']
        : size < DAY
          ? [HOUR, 'h']
          : [DAY, 'd']
  const text = `${Math.floor(size / unit)} ${name}`
  return ms < 0 ? `${text} ago` : `in ${text}`
}

/** As `remaining` in ui.ts says it. */
function remaining(ms) {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 1) return 'now'
  if (ms < MINUTE) return `in ${seconds} s`
  if (ms < HOUR) return `in ${Math.floor(ms / MINUTE)} min ${seconds % 60} s`
  return ms < DAY
    ? `in ${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
    : `in ${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`
}

function tick() {
  for (const time of document.querySelectorAll('time[datetime]:not(.exact)')) {
    const ms = Date.parse(time.dateTime) - Date.now()
    const text = 'countdown' in time.dataset ? remaining(ms) : relative(ms)
    if (time.textContent !== text) time.textContent = text
  }
}
tick()
setInterval(tick, 1_000)

// What brings itself up to date waits while nobody sees it, and while somebody reads what is open in it or is asked something: when it would
// ask, and when an answer comes to what it asked before.
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

// What a bar of a chart stands for, beside the pointer. The same is in the chart's table.
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

// A double click must not send a form twice: of two answers only the second is seen, and the first may hold a secret.
document.addEventListener('submit', (event) => {
  const form = event.target
  if (form.method !== 'post' || form.hasAttribute('hx-post')) return
  if (form.dataset.sent !== undefined) event.preventDefault()
  form.dataset.sent = ''
  setTimeout(() => delete form.dataset.sent, 5_000)
})
